// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"os"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// TestMain gives the tests and bfdd a high priority: on a busy machine, a session of 3 x 20 ms would flap.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run()) // the tests skip themselves
	}
	os.Exit(proc.Nest("SLB_TEST_BFD_DIR", func(string) int { return m.Run() }))
}
