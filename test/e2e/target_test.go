// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// withoutLayer2 labels specs that need no gateway of a segment.
const withoutLayer2 = "without layer 2"

// network is the cluster that the features run on: $E2E_TARGET is model (the default) or ovnkube, $E2E_MODE and $E2E_GATEWAY say how that is
// configured, as `lab up --mode --gateway` does.
func network() lab.Network {
	return lab.Network{Kind: os.Getenv("E2E_TARGET"), Mode: os.Getenv("E2E_MODE"), Gateway: os.Getenv("E2E_GATEWAY")}
}
