// SPDX-License-Identifier: Apache-2.0

package container

import (
	"fmt"
	"os"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const (
	// role is the environment variable with the file of a spec, in the process that becomes its container.
	role = "SLB_TEST_CONTAINER"
	// inside is the environment variable with the directory of the test, in its network namespace.
	inside = "SLB_TEST_CONTAINER_FILES"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(role); file != "" {
		fmt.Fprintln(os.Stderr, "become a container:", run(file))
		os.Exit(1)
	}
	os.Exit(contract.Main(m, func() int { return proc.Nest(inside, func(string) int { return ovnprefix.Main(m) }) }))
}
