// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

// Prometheus accepts the rules, and the page for users lists each alert.
func TestAlertsAreValidAndDocumented(t *testing.T) {
	text, err := os.ReadFile(root + "/dist/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := sigsyaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	rules, err := json.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", "--lint-fatal", file).
		CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	var alerts []string
	for _, g := range object.Spec.Groups {
		for _, r := range g.Rules {
			name, ok := r["alert"].(string)
			if !ok {
				t.Errorf("rule without an alert: %v", r)
			}
			alerts = append(alerts, name)
		}
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
	slices.Sort(alerts)
	slices.Sort(documented)
	if diff := cmp.Diff(alerts, documented); diff != "" || len(alerts) == 0 {
		t.Errorf("alerts.yaml - and docs/metrics.md +:\n%s", diff)
	}
}
