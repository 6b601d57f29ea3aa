// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The README and the support matrix have the same table of network modes; that of the support matrix also names the
// tests, which exist.
func TestNetworkModes(t *testing.T) {
	const head = "\n| | central mode | interconnect |\n"
	_, rest, _ := strings.Cut(read(t, "docs/support.md"), head)
	table, _, found := strings.Cut(rest, "\n\n")
	short := regexp.MustCompile(": (?:`make [^`]+`(?:, )?)+").ReplaceAllString(table, "")
	if !found || short == table || !strings.Contains(read(t, "README.md"), head+short+"\n\n") {
		t.Error("README.md and docs/support.md differ in the table of network modes")
	}
	for _, target := range regexp.MustCompile("`make ([^`]+)`").FindAllStringSubmatch(table, -1) {
		if out, err := exec.Command("make", "-C", root, "-n", target[1]).CombinedOutput(); err != nil {
			t.Errorf("make %s: %v\n%s", target[1], err, out)
		}
	}
}
