// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"flag"
	"os"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Of the environment: inside says that the process is the one in the node's namespace, and where its files are; sessions
// makes it a speaker alone.
const (
	inside   = "SLB_TEST_BGP_DIR"
	sessions = "SLB_TEST_BGP_SESSIONS"
)

func TestMain(m *testing.M) {
	if os.Getenv(sessions) != "" {
		os.Exit(speakAlone())
	}
	os.Exit(proc.Nest(inside, func(string) int {
		flag.Parse()
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
		// Tests wait more than they work.
		if !given {
			_ = flag.Set("test.parallel", "8") // The flag exists.
		}
		return m.Run()
	}))
}
