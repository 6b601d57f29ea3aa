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

// program creates a program that prints a version of OVN.
func program(t *testing.T, file, version string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\necho ovn-nbctl " + version + "\necho Open vSwitch Library 9.9.9\n"
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// versions has the version of OVN in each directory of the cache. It is empty where the directory has no program.
type versions map[string]string

func TestChosenPrefix(t *testing.T) {
	for name, c := range map[string]struct {
		installed string
		unpacked  versions
		named     string
		want      string // a directory in the cache, or named
	}{
		"named":                 {installed: "25.03.0", unpacked: versions{"ovn-sid": "26.03.1"}, named: "/x", want: "/x"},
		"none unpacked":         {installed: "23.03.1"},
		"installed is older":    {installed: "23.03.1", unpacked: versions{"ovn-sid": "25.03.0"}, want: "ovn-sid"},
		"installed is as new":   {installed: "25.03.0", unpacked: versions{"ovn-sid": "25.03.0"}},
		"installed is newer":    {installed: "26.03.1", unpacked: versions{"ovn-sid": "25.03.0"}},
		"first of two unpacked": {unpacked: versions{"ovn-sid": "26.03.1", "ovn-trixie": "25.03.0"}, want: "ovn-sid"},
		"last of two unpacked":  {unpacked: versions{"ovn-sid": "26.03.9", "ovn-trixie": "26.03.10"}, want: "ovn-trixie"},
		"one is incomplete":     {unpacked: versions{"ovn-sid.new": "", "ovn-trixie": "25.03.0"}, want: "ovn-trixie"},
		"none at all":           {},
	} {
		t.Run(name, func(t *testing.T) {
			base, bin := t.TempDir(), t.TempDir()
			t.Setenv("SLB_CACHE", base)
			t.Setenv("PATH", bin)
			t.Setenv(Variable, c.named)
			for dir, version := range c.unpacked {
				if version == "" {
					if err := os.Mkdir(filepath.Join(base, dir), 0o755); err != nil {
						t.Fatal(err)
					}
					continue
				}
				program(t, filepath.Join(base, dir, "bin/ovn-nbctl"), version)
			}
			if c.installed != "" {
				program(t, filepath.Join(bin, "ovn-nbctl"), c.installed)
			}
			want := c.want
			if want != "" && c.named == "" {
				want = filepath.Join(base, want)
			}
			if got := Chosen(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
