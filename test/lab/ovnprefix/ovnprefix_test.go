// SPDX-License-Identifier: Apache-2.0

package ovnprefix

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build creates a directory that looks like a build, except for the file without.
func build(t *testing.T, without string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bin/ovn-nbctl", "sbin/ovsdb-server", "share/ovn/ovn-nb.ovsschema",
		"share/openvswitch/vswitch.ovsschema"} {
		if name == without {
			continue
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestUsePutsProgramsAndSchemasFirst(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH"))
	first, second := build(t, ""), build(t, "")
	for _, prefix := range []string{first, second, first, ""} {
		if err := Use(prefix); err != nil {
			t.Fatal(err)
		}
		if prefix == "" {
			prefix = first // An empty prefix changes nothing.
		}
		for _, program := range []string{"bin/ovn-nbctl", "sbin/ovsdb-server"} {
			if got, err := exec.LookPath(filepath.Base(program)); err != nil || got != filepath.Join(prefix, program) {
				t.Errorf("%s is %s, %v; want that of %s", program, got, err, prefix)
			}
		}
		if got, want := Schema("ovn/ovn-nb.ovsschema"), filepath.Join(prefix, "share/ovn/ovn-nb.ovsschema"); got != want {
			t.Errorf("schema %s, want %s", got, want)
		}
		if n := strings.Count(os.Getenv("PATH"), first); n != 2 {
			t.Errorf("%d entries in PATH, want 2: %s", n, os.Getenv("PATH"))
		}
	}
}

func TestSystemSchema(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if got, want := Schema("ovn/ovn-nb.ovsschema"), "/usr/share/ovn/ovn-nb.ovsschema"; got != want {
		t.Errorf("schema %s, want %s", got, want)
	}
}

func TestUseRejectsDirectoriesWithoutABuild(t *testing.T) {
	before := os.Getenv("PATH")
	for prefix, want := range map[string]string{
		"ovn-25.09.2":                          "absolute path",
		t.TempDir():                            "bin/ovn-nbctl",
		build(t, "sbin/ovsdb-server"):          "sbin/ovsdb-server",
		build(t, "share/ovn/ovn-nb.ovsschema"): "ovn-nb.ovsschema",
	} {
		err := Use(prefix)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), Variable+"=") {
			t.Errorf("%s: %v, want one with %q", prefix, err, want)
		}
	}
	if os.Getenv("PATH") != before {
		t.Error("PATH changed")
	}
}

func TestChosenPrefix(t *testing.T) {
	for name, c := range map[string]struct {
		installed string
		fetched   bool
		named     string
		want      string // CACHE is replaced by the directory that contrib/ovn.sh fills.
	}{
		"named":                        {installed: "25.03.0", fetched: true, named: "/usr", want: "/usr"},
		"installed, new enough":        {installed: "25.03.0", fetched: true},
		"installed, newer":             {installed: "26.03.1", fetched: true},
		"installed, old":               {installed: "24.09.3", fetched: true, want: "CACHE"},
		"none installed":               {fetched: true, want: "CACHE"},
		"installed, old, none fetched": {installed: "23.03.1"},
	} {
		t.Run(name, func(t *testing.T) {
			base, bin := t.TempDir(), t.TempDir()
			t.Setenv("SLB_CACHE", base)
			t.Setenv("PATH", bin)
			t.Setenv(Variable, c.named)
			if c.fetched {
				if err := os.Mkdir(filepath.Join(base, fetched), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.installed != "" {
				text := "#!/bin/sh\necho ovn-nbctl " + c.installed + "\necho Open vSwitch Library 9.9.9\n"
				if err := os.WriteFile(filepath.Join(bin, "ovn-nbctl"), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			want := strings.Replace(c.want, "CACHE", filepath.Join(base, fetched), 1)
			if got := Chosen(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
