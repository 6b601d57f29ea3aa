// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const contestedBy = "answered for outside of the cluster by"

func stranger(c world.Conflict) string {
	return fmt.Sprintf("MAC %s (seen by node %s since %s)", c.MAC, c.Node, c.Since.UTC().Format(time.RFC3339))
}

// Contested says who answers for an address outside of the cluster.
func Contested(c world.Conflict) string { return contestedBy + " " + stranger(c) }

// contested is that, empty if nobody does.
func (b *book) contested(a netip.Addr) string {
	if c, there := b.conflicts[a]; there {
		return Contested(c)
	}
	return ""
}
