// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Network is a layer 2 dataplane: what applies plans, and what observes the result.
type Network struct {
	Dataplane dataplane.Dataplane
	Observer  Observer
	// Zones is what publishes plans for zones, or nil.
	Zones Zones
	// NamespaceBatch is loop.Options.NamespaceBatch.
	NamespaceBatch int
}

// Observer observes a network.
type Observer interface {
	// Run keeps the observed state up to date until ctx is done. Synced is closed after the initial read.
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	// Observe adds the state that only the network can observe to a snapshot.
	Observe(w *world.Snapshot)
	// Unreachable returns an error that names the required databases that are not connected. Unread returns one that
	// names the databases whose current contents are not known. Both return nil if there are none.
	Unreachable() error
	Unread() error
}

// Zones observes what the agents of zones have applied. Package zones implements it and describes its methods.
type Zones interface {
	// Awaited is kube.Hooks.Awaited.
	Awaited() uint64
	// Lags is kube.Hooks.Lags.
	Lags(node string) bool
	// UnreadKinds is like Watch.UnreadKinds of package kube, for what is read of the zones only.
	UnreadKinds() map[string]string
	ObserveReports(w *world.Snapshot, agents map[string]*world.ZoneAgent, published []world.Key) []world.Key
}

// noZones are those of a cluster without interconnect.
type noZones struct{}

func (noZones) Awaited() uint64 { return 0 }

func (noZones) Lags(string) bool { return false }

func (noZones) UnreadKinds() map[string]string { return nil }

func (noZones) ObserveReports(*world.Snapshot, map[string]*world.ZoneAgent, []world.Key) []world.Key {
	return nil
}

// Hooks are the functions of a Controller that its network calls. They do not block.
type Hooks struct {
	// Changed is called when the observed state has changed, Drifted when another client changed what was applied.
	Changed, Drifted func()
	// Resync is called when everything has to be applied again at once, because what is applied is unknown or because
	// the dataplane itself limits how often it reports drift. It returns false if that was scheduled already.
	Resync func() bool
	// Transacted is called after each transaction.
	Transacted func(error)
	// Progress is called while the dataplane works on a call that may take long.
	Progress func()
	// Translated is called with Services whose changes have taken effect, after Dataplane.Pending returned a time.
	Translated func([]world.Key)
	// Repeat is called with Services that are to be applied again at once, because their result is another one.
	Repeat func([]world.Key)
}

// OVNDataplane programs and observes the databases of a cluster. Package ovn implements it and describes its methods.
type OVNDataplane interface {
	dataplane.Dataplane
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	Unreachable() error
	Unread() error
	ShardStates() (states map[world.ShardID]world.ShardState, claimsRead bool)
	Bridges() map[string]world.Bridges
	Announced(services []world.Key) map[netip.Addr]bool
	Misplaced() map[netip.Addr]bool
}

var _ OVNDataplane = (*ovn.Dataplane)(nil)

// OVNEvents returns a handler of events from OVN's databases that calls the hooks.
func OVNEvents(h Hooks) func(ovn.EventKind) {
	return func(what ovn.EventKind) {
		if what == ovn.Rows {
			h.Resync()
			return
		}
		h.Changed()
	}
}

// OVN returns the network of an OVN dataplane.
func OVN(d OVNDataplane) *Network {
	return &Network{Dataplane: d, Observer: &ovnObserver{OVNDataplane: d}}
}

// ovnObserver observes OVN and keeps the state last observed in its databases.
type ovnObserver struct {
	OVNDataplane
	shardStates map[world.ShardID]world.ShardState
	bridges     map[string]world.Bridges
	announced   map[netip.Addr]bool
}

// Observe adds the state of each shard, the bridges of each node and the announced addresses. While the connection is
// down, it keeps the order of gateways, the bridges and the addresses that were observed last. Otherwise every gateway
// would be selected again, and what is announced although its namespace has a label that came later would be withdrawn.
// The active gateway of a shard is unknown during that time.
func (o *ovnObserver) Observe(w *world.Snapshot) {
	if seen, _ := o.ShardStates(); seen != nil {
		o.shardStates = seen
	} else {
		o.shardStates = maps.Clone(o.shardStates)
		for shard, c := range o.shardStates {
			c.Active, c.Settled = "", false
			o.shardStates[shard] = c
		}
	}
	w.NameGateways(o.shardStates)
	if seen := o.Bridges(); seen != nil {
		o.bridges = seen
	}
	w.Bridges = o.bridges
	if w.Announced = o.Announced(w.ServicesToVerify()); w.Announced != nil {
		o.announced = w.Announced
	}
	w.LastAnnounced = o.announced
	w.Misplaced = o.Misplaced()
}

// reconnectTime is how long databases may be unreachable before statuses report it. Finding another leader of a
// database cluster or restarting a server must not cause the statuses of all Services to be written twice.
const reconnectTime = 5 * time.Second

// observe returns the state observed from the network. unreachableAt is the time at which statuses will report that its
// databases are unreachable, or the zero time if no such report is pending.
func (c *Controller) observe(w *world.Snapshot) (known report.Observed, unreachableAt time.Time) {
	known = report.Observed{Synced: c.synced()}
	if c.runner != nil {
		known.Programmed = c.runner.Results()
		known.Configured, known.TopologyError = c.runner.TopologyResult()
	}
	if c.observer == nil {
		return known, time.Time{}
	}
	known.Unread = c.observer.Unread() != nil
	if c.observer.Unreachable() == nil {
		c.unreachable = time.Time{}
		return known, time.Time{}
	}
	if c.unreachable.IsZero() {
		c.unreachable = w.Now
	}
	if at := c.unreachable.Add(reconnectTime); w.Now.Before(at) {
		return known, at
	}
	known.Unreachable = "the controller is not connected to OVN's databases, so the state of the gateways is unknown; " +
		"OVN keeps its configuration"
	return known, time.Time{}
}
