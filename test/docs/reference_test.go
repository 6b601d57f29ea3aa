// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

// The pages of docs/reference are those that `make generate` would write.
func TestReferenceIsFresh(t *testing.T) {
	contract.Test(t, "go")
	built, fresh := t.TempDir(), t.TempDir()
	for _, name := range []string{"kubectl-slb", "ovnkube-slb"} {
		path, err := program.Path(t.Context(), "go-controller/cmd/"+name, built)
		if err != nil {
			t.Fatal(err)
		}
		built = filepath.Dir(path)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./contrib/reference", "dist/manifests/crds",
		"go-controller/pkg/api/v1alpha1", built, fresh)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	pages := readDir(t, fresh)
	if len(pages) == 0 {
		t.Error("no page was generated")
	}
	if diff := cmp.Diff(pages, readDir(t, filepath.Join(root, "docs/reference"))); diff != "" {
		t.Errorf("docs/reference differs from what is generated: run make generate\n%s", diff)
	}
}

func readDir(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[f.Name()] = string(text)
	}
	return texts
}

// The page for users has a row for each reason of a condition and of an excluded node, and for no other reason.
func TestTroubleshootingHasEachReason(t *testing.T) {
	names := read(t, "go-controller/pkg/api/v1alpha1/reasons.go")
	page := read(t, "docs/troubleshooting.md")
	reasons := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t(?:Reason|Excluded)\w+ += "(\w+)"$`).FindAllStringSubmatch(names, -1) {
		reasons[m[1]] = true
		if !strings.Contains(page, "`"+m[1]+"`") {
			t.Errorf("docs/troubleshooting.md has no reason %s", m[1])
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(page, -1)
	for _, m := range rows {
		if !reasons[m[1]] {
			t.Errorf("docs/troubleshooting.md: %s is no reason in reasons.go", m[1])
		}
	}
	if len(reasons) == 0 || len(rows) == 0 {
		t.Errorf("reasons: %d, rows: %d: are they where this test looks?", len(reasons), len(rows))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
