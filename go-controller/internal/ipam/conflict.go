// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const conflictRole = "used outside of the cluster by"

func describe(c world.Conflict) string {
	return fmt.Sprintf("MAC %s (seen by node %s since %s)", c.MAC, c.Node, c.Since.UTC().Format(time.RFC3339))
}

// ConflictMessage describes the host that answers for an address outside of the cluster.
func ConflictMessage(c world.Conflict) string {
	if c == (world.Conflict{}) {
		return "to be probed unless it is announced: a host outside of the cluster answered for it, or for another " +
			"address of the Service"
	}
	return conflictRole + " " + describe(c)
}

// contested returns ConflictMessage for an address, or an empty string if no such host answers.
func (pi *poolIndex) contested(a netip.Addr) string {
	if c, there := pi.conflicts[a]; there {
		return ConflictMessage(c)
	}
	return ""
}
