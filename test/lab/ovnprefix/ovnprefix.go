// SPDX-License-Identifier: Apache-2.0

// Package ovnprefix selects the build of OVN and Open vSwitch that tests, benchmarks and the lab run. It is the one
// that the system has installed, or one in a directory with bin, sbin and share (including schemas), as `make install`
// or contrib/ovn.sh create it. Such a build may be in a different directory than the one it was configured for, so
// callers specify the paths of sockets, databases and schemas.
package ovnprefix

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/cache"
)

// Variable is the environment variable that names the directory. If it is empty, tests and benchmarks use the system's
// build, and the lab uses [Chosen].
const Variable = "LAB_OVN_PREFIX"

// unpacked matches the directories that contrib/ovn.sh fills, in [cache.Dir].
const unpacked = "ovn-*"

// Chosen returns the directory of the build for a lab. It is the one that the environment specifies, else the newest of
// the system's build and those that contrib/ovn.sh has unpacked. It is empty for the system's build, which is preferred
// to an unpacked one of the same version.
func Chosen() string {
	if prefix := os.Getenv(Variable); prefix != "" {
		return prefix
	}
	newest, chosen := "", ""
	if version, err := Version(); err == nil {
		newest = version
	}
	dir, err := cache.Dir()
	if err != nil {
		return ""
	}
	prefixes, _ := filepath.Glob(filepath.Join(dir, unpacked)) // The only error is a malformed pattern.
	for _, prefix := range prefixes {
		if version, err := versionOf(filepath.Join(prefix, "bin", client)); err == nil && compare(version, newest) > 0 {
			newest, chosen = version, prefix
		}
	}
	return chosen
}

// Version returns the version of OVN in use, such as 25.03.0. It returns an error if ovn-nbctl(8) cannot be run.
func Version() (string, error) { return versionOf(client) }

func versionOf(program string) (string, error) {
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return first[strings.LastIndexByte(first, ' ')+1:], nil
}

// compare orders versions by their numbers: 9 is older than 10.
func compare(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, _ := strconv.Atoi(x) // Text, which versions of releases do not contain, counts as 0.
		n, _ := strconv.Atoi(y)
		return cmp.Compare(m, n)
	})
}

// Use prepends the directories of the build to PATH for this process and its child processes. The last call takes
// precedence. An empty prefix changes nothing. A directory without such a build is an error.
func Use(prefix string) error {
	if prefix == "" {
		return nil
	}
	if !filepath.IsAbs(prefix) {
		return fmt.Errorf("%s=%q: want an absolute path", Variable, prefix)
	}
	for _, needed := range []string{"bin/" + client, "sbin/" + server, "share/ovn/ovn-nb.ovsschema",
		"share/openvswitch/vswitch.ovsschema"} {
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

// Main runs the tests of a package, given as an [*testing.M], with the build that the environment specifies. It returns
// their exit status.
func Main(tests interface{ Run() int }) int {
	if err := Use(os.Getenv(Variable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests.Run()
}

const (
	// server is the program by which PATH determines the build in use.
	server = "ovsdb-server"
	// client is the program that is asked for the version.
	client = "ovn-nbctl"
)

// Schema returns the path of a database schema, such as ovn/ovn-nb.ovsschema or openvswitch/vswitch.ovsschema, of the
// build in PATH.
func Schema(name string) string {
	if found, err := exec.LookPath(server); err == nil {
		beside := filepath.Join(filepath.Dir(filepath.Dir(found)), "share", name)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return filepath.Join("/usr/share", name)
}
