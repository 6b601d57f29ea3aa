// SPDX-License-Identifier: Apache-2.0

// Package contract marks the tests that need a real daemon, the kernel's networking or another program. They show what
// these do with what we send them. Packages mix them with unit tests, which need nothing and run with -short:
//
//	go test -short ./go-controller/...   unit tests
//	go test ./go-controller/...          both
package contract

import (
	"flag"
	"os"
	"os/exec"
	"testing"
)

// Main runs tests of a package whose contract tests need more than one test can set up, such as a namespace for the
// whole process. run sets that up and runs the tests. With -short, the tests run without.
func Main(tests interface{ Run() int }, run func() int) int {
	flag.Parse()
	if testing.Short() {
		return tests.Run()
	}
	return run()
}

// Test marks the calling test, or a part of its setup, as one that needs the programs. With -short it is skipped. It
// fails if a program is missing: what does not run shows nothing.
func Test(t testing.TB, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("contract test: runs without -short")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: make setup installs it", err)
		}
	}
}

// TestAsRoot is Test for tests that need root as well, because they create network namespaces. Others skip them.
func TestAsRoot(t testing.TB, programs ...string) {
	t.Helper()
	Test(t, programs...)
	if os.Geteuid() != 0 {
		t.Skip("contract test: network namespaces need root")
	}
}
