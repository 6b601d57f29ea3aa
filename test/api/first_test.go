// SPDX-License-Identifier: Apache-2.0

package api

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// testFirstPool applies what follows in the README without a pause, but until the kinds are served, as they are when a
// controller runs. The API server, to which our kinds are new, loads the parameters of the admission policy only after
// the policy and the kinds exist. Until then it must not refuse a pool.
func (s *server) testFirstPool(t *testing.T) {
	await.NoError(t, "our kinds are served", s.ServesKinds)
	s.deleteAfter(t, "-f", filepath.Join(examples, "pool.yaml"))
	s.kubectl(t, "apply", "-f", filepath.Join(examples, "pool.yaml"))
	await.True(t, "an overlapping pool is refused", func() bool {
		err := s.create(t.Context(), pool("overlapping", `[10.50.0.100]`))
		return err != nil && strings.Contains(err.Error(), "of IPAddressPool public")
	})
}
