// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The README and the support matrix have the same table of network modes, and the tests that it names exist.
func TestNetworkModes(t *testing.T) {
	const head = "\n| | central mode | interconnect |\n"
	_, rest, _ := strings.Cut(read(t, "docs/support.md"), head)
	table, _, found := strings.Cut(rest, "\n\n")
	if !found || !strings.Contains(read(t, "README.md"), head+table+"\n\n") {
		t.Error("README.md and docs/support.md differ in the table of network modes")
	}
	for _, target := range regexp.MustCompile("`make ([^`]+)`").FindAllStringSubmatch(table, -1) {
		if out, err := exec.Command("make", "-C", root, "-n", target[1]).CombinedOutput(); err != nil {
			t.Errorf("make %s: %v\n%s", target[1], err, out)
		}
	}
}
