// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Dataplane programs and observes the databases of a zone. Package ovn implements it and describes its methods, which
// may be called from any goroutine, except those of dataplane.Dataplane.
type Dataplane interface {
	dataplane.Dataplane
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	Unread() error
	UnreadNB() error
	UnreadSB() error
	OwnsZone() bool
	LacksTransit() bool
	Bridges() map[string]world.Bridges
	ShardStates() (states map[world.ShardID]world.ShardState, claimsRead bool)
	Stalled() time.Time
	Misplaced() map[netip.Addr]bool
	Miskeyed() []string
}

var _ Dataplane = (*ovn.Dataplane)(nil)
