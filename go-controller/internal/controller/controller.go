// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Config contains what a Controller works with.
type Config struct {
	Kube    kubernetes.Interface
	Clients *kube.Clients
	// Cluster has the configured facts about the cluster.
	Cluster world.Cluster
	Convert convert.Options
	// Network returns the network, or nil if there is none. It is called once, by New.
	Network func(Hooks) (*Network, error)
	// Registerer registers the metrics; nil disables them.
	Registerer prometheus.Registerer
}

// Controller allocates addresses to Services, and passes plans to a network and statuses to the API server.
type Controller struct {
	kube        kubernetes.Interface
	cluster     world.Cluster
	facts       *kube.Facts
	watch       *kube.Watch
	services    *kube.ServiceWriter
	pools       *kube.ObjectWriter[*v1alpha1.IPAddressPool]
	domains     *kube.ObjectWriter[*v1alpha1.L2Domain]
	bgp         *kube.BGPWriter
	probeWriter *kube.ProbeWriter
	// frr is nil if frr-k8s is not used. advertises is set if it has the sessions of a peer.
	frr        *kube.FRRWriter
	claims     *kube.ClaimWriter
	advertises atomic.Bool
	events     *kube.Events
	metrics    *metrics
	wakeups    *wakeups

	// observer and runner are nil without a network.
	observer Observer
	runner   *loop.Runner
	zones    Zones

	decided atomic.Bool
	// withoutLayer2 is set if the current mode needs no database.
	withoutLayer2 atomic.Bool
	// deciding and applying are the heartbeats of the decision passes and the runner.
	deciding, applying loop.Heartbeat
	// resync is set if OVN's rows differ from what was applied. They are written again after a pass has observed the
	// current states of the shards.
	resync atomic.Bool

	// fullPassDue is set if the last decision lacks a change: of other objects than Services, or one that could not be
	// amended.
	fullPassDue atomic.Bool

	// The following fields are used only by the passes.
	state     decide.State
	wakeTimer wakeTimer
	// due is when the next full pass is due, the probe requests of the last decision excepted.
	due         time.Time
	statusCache report.Cache
	// last holds the last decision, or nil before the first one.
	last          *report.Builder
	withdrawal    withdrawal
	frrState      frrk8s.State
	ignoredLogged logTimes
	// unreachable is the time since which the databases cannot be reached, or zero if they can.
	unreachable time.Time

	mu sync.Mutex
	// reported are the Services whose result may have changed since the last pass.
	reported []world.Key
}

// New returns a Controller that does nothing before Run.
func New(cfg Config) (*Controller, error) {
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		kube:    cfg.Kube,
		cluster: cfg.Cluster,
		events:  &kube.Events{},
		metrics: m,
		state:   decide.NewState(rand.Uint64()),
		wakeups: newWakeups(), ignoredLogged: logTimes{},
		zones: noZones{},
	}
	c.facts = kube.NewFacts(
		cfg.Convert,
		kube.Hooks{
			Wake:    c.wakeups.wake,
			Changed: func(k world.Key) { c.services.Changed(k) },
			Expected: func(k world.Key, addrs []netip.Addr) bool {
				// What the status shows is advertised by frr-k8s, which takes a pass.
				return !c.advertises.Load() && c.services.Expected(k, addrs)
			},
			Awaited: func() uint64 { return c.zones.Awaited() },
			Lags:    func(node string) bool { return c.zones.Lags(node) },
		})
	c.events.OnAllocated = func(k world.Key) { m.observeAllocation(c.facts.PendingSince(k)) }
	c.services = kube.NewServiceWriter(cfg.Kube.CoreV1(), c.facts, c.events, m.countWrite)
	m.lastPass.unwritten = c.services.Unwritten
	c.pools = kube.NewPoolWriter(cfg.Clients.Pools, c.facts.Pool, m.countWrite, c.events.Pool)
	c.domains = kube.NewDomainWriter(cfg.Clients.Domains, c.facts.Domain, m.countWrite, c.events.Domain)
	c.probeWriter = kube.NewProbeWriter(cfg.Kube, c.facts)
	c.bgp = kube.NewBGPWriter(cfg.Clients, c.facts, m.countWrite, c.events)
	c.frr = kube.NewFRRWriter(cfg.Clients, c.facts, m.countWrite)
	c.watch = kube.NewWatch(cfg.Kube, cfg.Clients, c.facts)
	c.claims = kube.NewClaimWriter(cfg.Clients, c.facts, c.watch, m.countWrite)
	network, err := cfg.Network(Hooks{
		Changed: c.requestFullPass, Drifted: dataplane.NewRepairs(c.drifted).Needed, Resync: c.drifted,
		Transacted: c.transacted, Translated: c.translated, Progress: c.applying.Beat,
		Repeat: func(keys []world.Key) { c.runner.Repeat(keys) },
	})
	if err != nil {
		return nil, err
	}
	if network != nil && network.Zones != nil {
		c.zones = network.Zones
	}
	if err := registerUnreadKinds(cfg.Registerer, c); err != nil || network == nil {
		return c, err
	}
	c.observer = network.Observer
	c.runner = loop.New(network.Dataplane, loop.Options{Report: c.report, ReportTopology: c.requestFullPass,
		Alive: c.applying.Beat, NamespaceBatch: network.NamespaceBatch})
	return c, nil
}

// Run runs the controller until ctx is done. It waits for servers that cannot be reached.
func (c *Controller) Run(ctx context.Context) error {
	id, ok := kube.AwaitClusterID(ctx, c.kube)
	if !ok {
		return nil
	}
	c.cluster.ID = id
	events := &corev1client.EventSinkImpl{Interface: c.kube.CoreV1().Events("")}
	var running sync.WaitGroup
	parts := []func(context.Context){
		c.watch.Run, c.services.Run, c.pools.Run, c.domains.Run, c.bgp.Run, c.probeWriter.Run, c.claims.Run, c.decide,
		func(ctx context.Context) { c.events.Run(ctx, events, c.services.Busy) },
	}
	if c.frr != nil {
		parts = append(parts, c.frr.Run)
	}
	if c.observer != nil {
		parts = append(parts, c.apply, c.connect)
	}
	for _, part := range parts {
		running.Go(func() { part(ctx) })
	}
	running.Wait()
	c.wakeTimer.set(time.Time{}, nil)
	return nil
}

func (c *Controller) connect(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.observer.Run(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to watch network changes")
		}
	})
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-c.observer.Synced():
			c.requestFullPass()
		}
	})
	running.Wait()
}

func (c *Controller) synced() bool {
	if c.observer == nil {
		return true
	}
	select {
	case <-c.observer.Synced():
		return true
	default:
		return false
	}
}

// drifted schedules a pass that applies everything again. It returns false if one was scheduled already.
func (c *Controller) drifted() bool {
	first := !c.resync.Swap(true)
	c.requestFullPass()
	return first
}

// requestFullPass requests a full pass.
func (c *Controller) requestFullPass() {
	c.fullPassDue.Store(true)
	c.wakeups.wake()
}

// transacted records a transaction. Applying thousands of Services takes many transactions, so each one counts as a
// heartbeat.
func (c *Controller) transacted(err error) {
	c.applying.Beat()
	c.metrics.countTransaction(err)
}

// report counts the results of the runner and schedules the pass that reads them.
func (c *Controller) report(results []loop.Result) {
	c.mu.Lock()
	for _, r := range results {
		if !r.Postponed {
			c.metrics.dataplane.WithLabelValues(outcome(r.Err)).Inc()
		}
		c.reported = append(c.reported, r.Key)
	}
	c.mu.Unlock()
	c.wakeups.wake()
}

// translated schedules the pass that reads the results of Services that are no longer pending.
func (c *Controller) translated(keys []world.Key) {
	c.mu.Lock()
	c.reported = append(c.reported, keys...)
	c.mu.Unlock()
	c.wakeups.wake()
}

// takeReported returns the Services whose result may have changed since the last pass.
func (c *Controller) takeReported() []world.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	reported := c.reported
	c.reported = nil
	return reported
}

func (c *Controller) decide(ctx context.Context) {
	if err := c.watch.WaitForSync(ctx); err != nil {
		return
	}
	c.requestFullPass()
	defer c.deciding.Stop()
	c.wakeups.run(ctx, passes{c.amendPass, c.fullPass, c.deciding.Beat})
}

func (c *Controller) apply(ctx context.Context) {
	defer c.applying.Stop()
	c.runner.Run(ctx)
}

// fullPass runs one full pass: it computes every decision and passes the results on. It does not block. Each part of it
// that takes longer the more objects there are ends with a heartbeat.
func (c *Controller) fullPass() {
	start := time.Now()
	c.fullPassDue.Store(false)
	c.takeReported()
	w, left := c.facts.Snapshot(c.cluster)
	w.Unsettled = c.services.Unsettled() // after the snapshot, which then has all that was written before
	c.deciding.Beat()
	w.Now = start
	known, unreachableAt := c.observe(w)
	resync := c.resync.Swap(false)
	if c.observer != nil && known.Synced {
		c.observer.Observe(w)
	}
	var before *world.ModeSetting
	if c.last != nil {
		before = &c.last.World.Cluster.ModeSetting
	}
	zones := world.ZonesOf(w.Nodes, w.Cluster.NoDatabase)
	interconnect := zones.Interconnect && !w.Cluster.OpenShiftSDN
	c.withoutLayer2.Store(!w.Cluster.ModeSetting.Mode.Layer2() || interconnect)
	c.events.ModeChanged(c.facts, before, w.Cluster.ModeSetting)
	due := c.withdrawal.deferRelease(w, known, c.runner == nil || interconnect && !known.Synced)
	d := c.state.Decide(w)
	c.putBack(d.Later)
	c.deciding.Beat()
	c.probeWriter.Set(d.Probes)
	c.logDecision(d)
	if c.runner != nil && known.Synced {
		c.runner.Set(d.Topology, d.Plans, nil)
		if resync {
			c.runner.Resync()
		}
	}
	c.claims.Set(d.Allocation.Claims(), w.Claims != nil && w.Claims.Missing == "")
	known.FRR = frrk8s.Render(w, d.BGP, &c.frrState)
	if c.frr != nil {
		c.advertises.Store(len(known.FRR.Peers) > 0)
		c.frr.Set(known.FRR.Objects, w.FRR.Available())
	}
	v := report.NewBuilder(d, known)
	c.last = v
	c.due = world.Earliest(due, unreachableAt, d.Due, v.PendingUntil(), known.FRR.Due)
	c.setWakeTimer()
	services := v.Services(&c.statusCache)
	c.deciding.Beat()
	for key, uid := range left {
		services[key] = &status.Service{UID: string(uid), Release: true}
	}
	c.services.Set(services)
	c.pools.Set(v.Pools())
	c.domains.Set(v.Domains())
	c.bgp.Set(v.BGPObjects())
	c.decided.Store(true)
	c.metrics.observePass(v, services, time.Since(start))
}

// setWakeTimer requests a full pass for when one is due.
func (c *Controller) setWakeTimer() {
	c.wakeTimer.set(world.Earliest(c.due, c.last.ProbesDue), c.requestFullPass)
}

// logPause is the time between two log lines about reports of the same node that are ignored. A node can cause a pass
// with each report.
const logPause = time.Minute

// logTimes are the times at which something was last logged about nodes, by name.
type logTimes map[string]time.Time

// allow reports whether a node is to be logged now, and if so, records it.
func (l logTimes) allow(node string, now time.Time) bool {
	maps.DeleteFunc(l, func(_ string, last time.Time) bool { return now.Sub(last) >= logPause })
	if _, recent := l[node]; recent {
		return false
	}
	l[node] = now
	return true
}

// logDecision logs the status refreshes that start. It logs and counts the newly reported conflicts that are ignored.
func (c *Controller) logDecision(d *decide.Decision) {
	for _, r := range d.Refreshed {
		klog.InfoS("Rewriting Service status so that OVN-Kubernetes recomputes its flows", "service", r.Service.String(),
			"listsPorts", r.ListPorts, "nextTry", r.Next)
	}
	for _, r := range d.Ignored {
		c.metrics.ignored.WithLabelValues(r.Reason).Inc()
		if c.ignoredLogged.allow(r.Node, d.World.Now) {
			klog.InfoS("Ignoring address conflict without a matching probe request", "node", r.Node, "address", r.Addr,
				"mac", r.MAC, "reason", r.Reason)
		}
	}
}
