// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// reportInterval is the minimum time between two reports. The controller waits for them, traffic does not.
const reportInterval = 200 * time.Millisecond

// openShiftNetworks is what the agent reads the cluster subnets from if they are not configured.
const openShiftNetworks = "networks.config.openshift.io"

// Options configure an Agent.
type Options struct {
	// Node is the name of the Node on which the agent runs.
	Node string
	// Boot is the ID of the present boot of the node.
	Boot string
	// Kube and Clients read the published objects.
	Kube    kubernetes.Interface
	Clients *kube.Clients
	// Report writes the node's Lease.
	Report *nodelease.Reporter
	// NB and SB are the databases of the node's zone.
	NB, SB ovn.Endpoint
	// NewDataplane returns the Dataplane of the zone; nil means that of NB and SB.
	NewDataplane func(ovn.Options) (Dataplane, error)
	// RunDir is the directory of ovn-northd's control socket.
	RunDir string
	// ClusterSubnets are those of OVN-Kubernetes, in its order. If empty, they are those of OpenShift's Network.
	ClusterSubnets []netip.Prefix
	// Registerer registers the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Agent programs the zone of one node.
type Agent struct {
	options   Options
	dataplane Dataplane
	runner    *loop.Runner
	informers map[string]cache.Controller
	wake      chan struct{}
	// resync is set if rows in the database differ from what was applied.
	resync atomic.Bool
	// shardStatesChanged is set if the node has claimed or released a shard, or the order of gateways in its database has
	// changed.
	shardStatesChanged atomic.Bool
	synced             atomic.Bool
	// owns is set while the databases are those of the node alone.
	owns    atomic.Bool
	northd  northd
	metrics *metrics
	// deciding and applying are the heartbeats of work and of the runner.
	deciding, applying loop.Heartbeat

	mu sync.Mutex
	published
	// orderTimer ends the wait of orders; nil before the first one waits.
	orderTimer *time.Timer

	// Used by work only.
	started   time.Time
	clusterID string // from which MAC addresses are derived
	claims    claims
	// contestedSince is since when another gateway is named the active one of a shard that the node has claimed.
	contestedSince map[world.ShardID]time.Time
	// role is what the rows of unchanged plans depend on.
	role    role
	overlay overlayState
	// bridges are the bridges of the node that were last read.
	bridges  world.Bridges
	problems problems
	// reported is the last report. reportedHere is when its AppliedHere was new, and hereDue when the next one is.
	reported              *world.ZoneAgent
	reportedHere, hereDue time.Time
}

// New returns an Agent. It does nothing before Run.
func New(o Options) (*Agent, error) {
	a := &Agent{options: o, started: time.Now().UTC().Truncate(time.Second), wake: make(chan struct{}, 1),
		claims:         claims{},
		contestedSince: map[world.ShardID]time.Time{}, published: newPublished(o.ClusterSubnets)}
	var err error
	if a.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, fmt.Errorf("l2 agent of node %s: %w", o.Node, err)
	}
	observed := func(what ovn.EventKind) {
		switch what {
		case ovn.Rows:
			a.resync.Store(true)
			a.shardStatesChanged.Store(true)
		case ovn.ShardStates:
			a.shardStatesChanged.Store(true)
		case ovn.Chassis:
		}
		a.changed()
	}
	if o.NewDataplane == nil {
		o.NewDataplane = func(options ovn.Options) (Dataplane, error) { return ovn.New(options) }
	}
	a.dataplane, err = o.NewDataplane(ovn.Options{NB: o.NB, SB: o.SB, Zone: o.Node, Boot: o.Boot, Changed: observed,
		Transacted: a.transacted, Translated: func([]world.Key) { a.changed() }, Fence: a.fence})
	if err != nil {
		return nil, fmt.Errorf("l2 agent of node %s: %w", o.Node, err)
	}
	a.runner = loop.New(a.dataplane, loop.Options{
		Report: func([]loop.Result) { a.changed() }, ReportTopology: a.changed, Alive: a.applying.Beat,
	})
	a.informers = map[string]cache.Controller{
		"nodes": kube.NewNodeInformer(o.Kube, func(old, now *corev1.Node) {
			a.update(func() bool { return a.changeNode(old, now) })
		}),
		"l2domains": kube.NewDomainInformer(o.Clients, func(old, now *v1alpha1.L2Domain) {
			a.update(func() bool { return a.setDomain(old, now) })
		}),
		"serviceplans": kube.NewPlanInformer(o.Clients, func(old, now *v1alpha1.ServicePlan) {
			a.update(func() bool { return a.setPlan(old, now) })
		}),
	}
	if len(o.ClusterSubnets) == 0 {
		a.informers[openShiftNetworks] = kube.NewNetworkConfigInformer(o.Clients, func(_, now *unstructured.Unstructured) {
			a.update(func() bool { return a.setNetwork(now) })
		})
	}
	if o.Registerer == nil {
		return a, nil
	}
	if err := kube.RegisterUnreadKinds(o.Registerer, a.unreadKinds); err != nil {
		return nil, fmt.Errorf("l2 agent of node %s: %w", o.Node, err)
	}
	return a, nil
}

// fence returns an error unless the databases are those of the node alone.
func (a *Agent) fence() error {
	if !a.owns.Load() {
		return errors.New("the node has no zone of its own (k8s.ovn.org/zone-name)")
	}
	return nil
}

// readBridges reads the bridges of the node. While the southbound database can't be read, or does not have the chassis,
// it keeps the last ones: OVN keeps its ports, too. a.mu must be held.
func (a *Agent) readBridges() {
	if n := a.nodes[a.options.Node]; n != nil {
		if seen, ok := a.dataplane.Bridges()[n.Chassis]; ok {
			if !maps.Equal(a.bridges, seen) {
				a.outdate(true)
			}
			a.bridges = seen
		}
	}
}

// update changes what is published and wakes the agent if that matters.
func (a *Agent) update(change func() bool) {
	a.mu.Lock()
	relevant := change()
	a.mu.Unlock()
	if relevant {
		a.changed()
	}
}

func (a *Agent) changed() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// transacted records a transaction. Applying thousands of Services takes many transactions, so each one counts as a
// heartbeat of the runner. The first ones may precede it (internal/ovn/stepdown.go).
func (a *Agent) transacted(err error) {
	if a.applying.Running() {
		a.applying.Beat()
	}
	a.metrics.transacted(err)
}

// Alive returns an error if a loop of the agent had no heartbeat for longer than stall. Only a restart helps then. An
// agent that waits for the API server or for a database is alive.
func (a *Agent) Alive(stall time.Duration) error {
	return loop.Stalled(stall, map[string]*loop.Heartbeat{
		"the agent of the zone": &a.deciding, "the runner of the zone": &a.applying})
}

// Healthy returns what the agent is waiting for, or nil. It waits for no database while another one than that of the
// node configures the node: in central mode most nodes have none, and the DaemonSet must be rolled out before a move to
// interconnect (docs/interconnect.md).
func (a *Agent) Healthy() error {
	if err := a.unreadObjects(); err != nil {
		return err
	}
	a.mu.Lock()
	known, own := len(a.clusterSubnets) > 0, a.nodes[a.options.Node]
	a.mu.Unlock()
	if own != nil && !own.HasOwnZone() {
		return nil
	}
	if !known {
		return errors.New("the cluster subnets are unknown: " + openShiftNetworks + " \"cluster\" has no clusterNetwork")
	}
	if !a.synced.Load() {
		return errors.New("the databases of the zone have not been read yet")
	}
	return a.dataplane.Unread()
}

// Run programs the zone until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, c := range a.informers {
		running.Go(func() { c.RunWithContext(ctx) })
	}
	running.Go(func() {
		if err := a.dataplane.Run(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to watch the databases of the zone")
		}
	})
	running.Go(func() { kube.LogUnreadKinds(ctx, a.unreadKinds) })
	running.Go(func() { a.watchNorthd(ctx) })
	running.Go(func() { a.work(ctx) })
	running.Wait()
	return nil
}

// work waits for what the agent needs, and is the main loop afterwards.
func (a *Agent) work(ctx context.Context) {
	if a.wait(ctx) {
		a.synced.Store(true)
		a.serve(ctx)
	}
}

// serve is the main loop.
func (a *Agent) serve(ctx context.Context) {
	defer a.deciding.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	var applying bool
	step := func() {
		if a.step() && !applying {
			applying = true
			running.Go(func() {
				defer a.applying.Stop()
				a.runner.Run(ctx)
			})
		}
	}
	step()
	report, reportDue := time.NewTimer(reportInterval), true
	defer report.Stop()
	idle := time.NewTicker(loop.BeatInterval)
	defer idle.Stop()
	for {
		a.deciding.Beat()
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
		case <-a.wake:
			step()
			if !reportDue {
				reportDue = true
				report.Reset(reportInterval)
			}
		case <-report.C:
			reportDue = false
			step() // A report must not lack what has been received before it.
			a.report()
		}
	}
}

// step passes what is published to the runner. It returns false if the zone must not be programmed.
func (a *Agent) step() bool {
	a.mu.Lock()
	a.readBridges()
	a.readHandovers()
	began := time.Now()
	if a.rests(began) {
		a.mu.Unlock()
		return a.owns.Load()
	}
	plans, only := a.changes()
	if !only {
		a.pace = pace{}
		defer func() { a.pace.rest(time.Since(began)) }()
	}
	var topology *plan.Topology
	var unread map[world.Key]struct{}
	ok := only
	switch {
	case only:
		for _, p := range plans {
			a.role.add(p, a.podSubnets)
		}
	case a.nodes[a.options.Node] == nil:
		topology, ok = withdrawn(a.options.Node), a.dataplane.OwnsZone()
		clear(a.shards)
		a.pruneOrders()
	default:
		topology, plans, ok = a.desired(a.options.Node, world.Cluster{ID: a.clusterID}, a.bridges)
		unread = a.unread
		a.awaitOrders()
	}
	a.mu.Unlock()
	if topology != nil {
		topology.Zone.Boot = a.options.Boot
	}
	a.owns.Store(ok)
	switch {
	case !ok:
		return false
	case only:
		a.runner.Change(plans)
	default:
		was := a.role
		a.role = roleOf(topology, plans)
		a.runner.SetAnew(topology, plans, unread, a.role.outdated(was, plans))
	}
	if a.resync.Swap(false) {
		a.runner.Resync()
	}
	return true
}
