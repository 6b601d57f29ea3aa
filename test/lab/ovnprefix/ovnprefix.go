// SPDX-License-Identifier: Apache-2.0

// Package ovnprefix chooses the build of OVN and Open vSwitch that tests, benchmarks and the lab run: the one that the system has
// installed, or one that is unpacked below a directory with bin, sbin and share (schemas included), as `make install` leaves it,
// and contrib/ovn.sh what it fetches for the lab.
// Such a build need not be where it was configured to be: whoever starts its programs names sockets, databases and schemas.
package ovnprefix

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/cache"
)

// Variable is the environment variable that names the directory. If it is empty, tests and benchmarks use the system's
// build, and the lab uses [Chosen].
const Variable = "LAB_OVN_PREFIX"

const (
	// Oldest is the first release of OVN that the lab takes from the system if it can have a newer one; contrib/ovn.sh has
	// the same.
	Oldest = "25.03"
	// fetched is the directory that contrib/ovn.sh fills, in [cache.Dir].
	fetched = "ovn-trixie"
)

// Chosen returns the directory for a lab: the one that the environment names, else the one that contrib/ovn.sh has filled
// if the system's build is missing or older than [Oldest], else empty for the system's build.
func Chosen() string {
	if prefix := os.Getenv(Variable); prefix != "" {
		return prefix
	}
	if version, err := Version(); err == nil && !Old(version) {
		return ""
	}
	dir, err := cache.Dir()
	if err != nil {
		return ""
	}
	prefix := filepath.Join(dir, fetched)
	if _, err := os.Stat(prefix); err != nil {
		return ""
	}
	return prefix
}

// Version returns the version of OVN in use, such as 25.03.0, and an error if ovn-nbctl(8) can't be run.
func Version() (string, error) {
	out, err := exec.Command("ovn-nbctl", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ovn-nbctl --version: %w", err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first[strings.LastIndexByte(first, ' ')+1:], nil
}

// Old reports whether a version is older than [Oldest]. Versions begin with year and month, two digits each.
func Old(version string) bool { return version < Oldest }

// Use has this process, and the processes that it starts, find the programs below the directory before all others; the last call wins.
// An empty prefix changes nothing. A directory without such a build is an error.
func Use(prefix string) error {
	if prefix == "" {
		return nil
	}
	if !filepath.IsAbs(prefix) {
		return fmt.Errorf("%s=%q: want an absolute path", Variable, prefix)
	}
	for _, needed := range []string{"bin/ovn-nbctl", "sbin/" + server, "share/ovn/ovn-nb.ovsschema", "share/openvswitch/vswitch.ovsschema"} {
		if _, err := os.Stat(filepath.Join(prefix, needed)); err != nil {
			return fmt.Errorf("%s=%q: no build of OVN and Open vSwitch: %w", Variable, prefix, err)
		}
	}
	dirs := []string{filepath.Join(prefix, "bin"), filepath.Join(prefix, "sbin")}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return os.Setenv("PATH", strings.Join(dirs, string(os.PathListSeparator)))
}

// Main runs the tests of a package, an [*testing.M], with the build that the environment names, and returns their exit status.
func Main(tests interface{ Run() int }) int {
	if err := Use(os.Getenv(Variable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests.Run()
}

// server is the program that knows which build is in use.
const server = "ovsdb-server"

// Schema is the path of a database schema, as ovn/ovn-nb.ovsschema or openvswitch/vswitch.ovsschema, of the build that PATH finds.
func Schema(name string) string {
	if found, err := exec.LookPath(server); err == nil {
		beside := filepath.Join(filepath.Dir(filepath.Dir(found)), "share", name)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return filepath.Join("/usr/share", name)
}
