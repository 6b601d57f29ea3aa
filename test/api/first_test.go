// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// freshServers is the number of API servers, new to our kinds, into which the test installs.
const freshServers = 2

// TestPoolRightAfterInstall runs the README's first commands without a pause between them, but until the kinds are
// served, as they are when a controller runs. The API server loads the parameters of the admission policy only after
// the policy and the kinds exist. Until then it must not refuse a pool.
func TestPoolRightAfterInstall(t *testing.T) {
	t.Parallel()
	for i := range freshServers {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := startEmpty(t)
			s.install(t)
			await.NoError(t, "the kinds of the examples are served", func(ctx context.Context) error {
				_, err := s.Kubectl(ctx, "get", "ipaddresspools.slb.k8s.ovn.org,l2domains.slb.k8s.ovn.org")
				return err
			})
			s.kubectl(t, "apply", "-f", filepath.Join(examples, "pool.yaml"))
			await.True(t, "an overlapping pool is refused", func() bool {
				err := s.create(t.Context(), pool("overlapping", `[10.50.0.100]`))
				return err != nil && strings.Contains(err.Error(), "of IPAddressPool public")
			})
		})
	}
}
