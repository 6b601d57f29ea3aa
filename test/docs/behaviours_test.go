// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each test, scenario and spec that CONTRIBUTING.md names as the protection of a behaviour exists.
func TestNamedTestsExist(t *testing.T) {
	_, table, found := strings.Cut(read(t, "CONTRIBUTING.md"), "### Which test protects which behaviour\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("CONTRIBUTING.md has no table of behaviours")
	}
	var source strings.Builder
	for _, dir := range []string{"go-controller", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, rows := source.String(), 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || strings.HasPrefix(row, "|---") {
			continue
		}
		rows++
		for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(row, -1) {
			if !strings.Contains(all, "func "+name[1]+"(") {
				t.Errorf("no test %s", name[1])
			}
		}
		for _, name := range regexp.MustCompile("`([a-z-]+\\.txtar)`").FindAllStringSubmatch(row, -1) {
			if _, err := os.Stat(filepath.Join(root, "go-controller/test/scenario/testdata", name[1])); err != nil {
				t.Errorf("no scenario %s", name[1])
			}
		}
		for _, text := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(cells[3], -1) {
			if !strings.Contains(all, text[1]) {
				t.Errorf("no spec %q", text[1])
			}
		}
	}
	if rows < 2 {
		t.Errorf("the table has %d rows", rows)
	}
}
