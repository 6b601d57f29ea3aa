// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// Prometheus accepts the rules, and the page for users lists each alert.
func TestAlertsAreValidAndDocumented(t *testing.T) {
	contract.Test(t, "promtool")
	dir := t.TempDir()
	alerts := slices.Sorted(maps.Keys(readAlerts(t, dir)))
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", "--lint-fatal",
		filepath.Join(dir, rulesFile)).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	page, err := os.ReadFile(root + "/docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile("`(SLB[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	var documented []string
	for _, m := range listed {
		documented = append(documented, m[1])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(alerts, documented); diff != "" {
		t.Errorf("alerts.yaml - and docs/metrics.md +:\n%s", diff)
	}
}
