// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"flag"
	"os"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Environment variables. inside marks the process in the node's namespace and contains the directory of its files.
// sessions makes the process run only a speaker.
const (
	inside   = "SLB_TEST_BGP_DIR"
	sessions = "SLB_TEST_BGP_SESSIONS"
)

func TestMain(m *testing.M) {
	if os.Getenv(sessions) != "" {
		os.Exit(speakAlone())
	}
	os.Exit(contract.Main(m, func() int { return proc.Nest(inside, func(string) int { return inParallel(m) }) }))
}

// inParallel runs the tests, eight at a time unless the command line says otherwise: they mostly wait.
func inParallel(m *testing.M) int {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "8") // the flag exists
	}
	return m.Run()
}
