// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

// FRR accepts each line of the example of a router's configuration.
func TestFRRAcceptsTheExample(t *testing.T) {
	contract.Test(t)
	vtysh := filepath.Join(frr.Prefix(), "bin/vtysh")
	if out, err := exec.CommandContext(t.Context(), vtysh, "--dryrun", "--inputfile", root+"/docs/examples/frr.conf").
		CombinedOutput(); err != nil {
		t.Errorf("docs/examples/frr.conf: %v\n%s", err, out)
	}
}
