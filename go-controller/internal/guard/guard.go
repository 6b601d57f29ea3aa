// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// checkInterval is the interval between checks of ovs-vswitchd and ovn-controller. Open vSwitch reports link changes
// as they happen.
const checkInterval = 500 * time.Millisecond

// Options configure a Guard.
type Options struct {
	// Node is the name of the Node on which the guard runs.
	Node string
	// Kube writes the node's report.
	Kube kubernetes.Interface
	// Switch is the node's Open vSwitch database.
	Switch ovn.Endpoint
	// Credentials are those of the southbound database. Their address is ignored; the address that ovn-controller
	// uses is taken instead.
	Credentials ovn.Endpoint
	// RunDir is the directory of ovn-controller's control socket.
	RunDir string
	// Report writes the node's Lease.
	Report *nodelease.Reporter
	// Registerer registers the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Guard monitors one node.
type Guard struct {
	options       Options
	vswitch       *ovn.Switch
	changed       chan struct{}
	bridges       *bridges
	tunnels       *tunnels
	leases        coordinationclient.LeaseInterface
	report        *nodelease.Reporter
	addressProber *addressProber
	// announcer announces the shards that the node claims.
	announcer *announcer
	// announcedProber looks for other hosts with the addresses of these shards.
	announcedProber *announcedProber
	metrics         *metrics
	// watching is the heartbeat of watch.
	watching loop.Heartbeat

	// Used by watch only.
	vswitchdHealth, controllerHealth *healthTracker
	faultHistory                     faultHistory
	// networks are the last known faults of the networks.
	networks map[string]world.Fault
}

// New returns a Guard. It does nothing before Run.
func New(o Options) (*Guard, error) {
	if o.Node == "" || o.Kube == nil || o.RunDir == "" || o.Report == nil {
		return nil, errors.New("guard: a node, a client, a report and the directory of ovn-controller's socket are needed")
	}
	leases := o.Kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
	g := &Guard{options: o, changed: make(chan struct{}, 1), leases: leases, report: o.Report,
		vswitchdHealth: newVswitchdTracker(), controllerHealth: newControllerTracker(), faultHistory: faultHistory{}}
	var err error
	if g.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, fmt.Errorf("guard of node %s: %w", o.Node, err)
	}
	g.vswitch, err = ovn.NewSwitch(o.Switch, g.wake)
	if err != nil {
		return nil, fmt.Errorf("guard of node %s: %w", o.Node, err)
	}
	g.bridges = newBridges(g.vswitch.Networks, o.Switch, func(found map[string]convert.Localnet) {
		write(g.report, v1alpha1.AnnotationLocalnets, found, anyStale(found))
	})
	g.tunnels = &tunnels{
		read: g.vswitch.Tunnels,
		isGateway: func() bool {
			networks, _ := g.vswitch.Networks()
			return hasLocalnets(networks)
		},
		report: g.reportTunnels,
	}
	g.addressProber = newAddressProber(g.vswitch.Networks, func(
		found map[netip.Addr]convert.ConflictReport, probed []string,
	) {
		report(g.report, v1alpha1.AnnotationConflicts, found)
		write(g.report, v1alpha1.AnnotationProbed, probed, false)
	})
	g.addressProber.metrics = g.metrics
	o.Report.Dispense(v1alpha1.AnnotationConflicts, v1alpha1.AnnotationProbed, v1alpha1.AnnotationAnnouncedConflicts)
	g.announcer = &announcer{
		chassis: g.vswitch.Chassis, networks: g.vswitch.Networks, credentials: o.Credentials,
		control: vswitchdSocket(o.Switch),
		metrics: g.metrics, changed: make(chan struct{}, 1), claims: make(chan ovn.Claim, maxQueuedClaims),
		repeats: repeats{},
	}
	g.announcedProber = newAnnouncedProber(g.vswitch.Networks, g.announcer.addresses,
		func(found map[netip.Addr]convert.ConflictReport) {
			write(g.report, v1alpha1.AnnotationAnnouncedConflicts, found, false)
		})
	g.announcedProber.metrics = g.metrics
	return g, nil
}

func (g *Guard) wake() {
	for _, changed := range []chan struct{}{g.changed, g.bridges.changed, g.announcer.changed} {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// Healthy returns an error if the guard can't observe the node.
func (g *Guard) Healthy() error {
	if _, known := g.vswitch.Networks(); !known {
		return errors.New("the Open vSwitch database can't be read")
	}
	return nil
}

// Alive returns an error if the checks of the node had no heartbeat for longer than stall. Only a restart helps then.
func (g *Guard) Alive(stall time.Duration) error {
	return loop.Stalled(stall, map[string]*loop.Heartbeat{"the checks of the guard": &g.watching})
}

// Run watches and reports until the context ends. The last report remains valid for the duration of the Lease, so
// that replacing a guard does not move shards.
func (g *Guard) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { _ = g.vswitch.Run(ctx) }) // ends only with the context
	running.Go(func() { g.watch(ctx) })
	running.Go(func() { g.bridges.run(ctx) })
	running.Go(func() { g.tunnels.run(ctx) })
	running.Go(func() { g.addressProber.run(ctx) })
	running.Go(func() { g.announcer.run(ctx) })
	running.Go(func() { g.announcedProber.run(ctx) })
	running.Go(func() {
		kube.NewOneLeaseInformer(g.leases, g.options.Node, onLease(func(l *coordinationv1.Lease) {
			select {
			case g.addressProber.leases <- l:
			case <-ctx.Done():
			}
		}, g.report.Renew)).RunWithContext(ctx)
	})
	running.Wait()
	return nil
}

func (g *Guard) watch(ctx context.Context) {
	vswitchd := unixctl.NewProber(vswitchdSocket(g.options.Switch))
	controller := unixctl.NewProber(filepath.Join(g.options.RunDir, "ovn-controller.*.ctl"))
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	defer g.watching.Stop()
	var ofNode world.Fault
	var reported map[string]world.Fault
	for {
		g.watching.Beat()
		select {
		case <-ctx.Done():
			return
		case <-g.changed:
		case <-tick.C:
			v, c := vswitchd.Check(ctx), controller.Check(ctx)
			if ctx.Err() != nil {
				return
			}
			ofNode = g.daemonFault(time.Now(), v, c)
		}
		faults, known := g.faults(ofNode)
		if known && (reported == nil || !maps.Equal(reported, faults)) {
			for network, f := range faults {
				if reported[network] != f {
					klog.InfoS("Detected a fault", "network", network, "reason", f.Message)
				}
			}
			g.metrics.update(reported, faults)
			g.reportFaults(faults)
			reported = faults
		}
	}
}

// daemonFault records heartbeats and returns the fault of every network, if there is one. Without ovs-vswitchd it
// does not matter what ovn-controller does.
func (g *Guard) daemonFault(now time.Time, vswitchd, controller unixctl.ProbeResult) world.Fault {
	ofVswitchd, ofController := g.vswitchdHealth.observe(now, vswitchd), g.controllerHealth.observe(now, controller)
	switch {
	case ofVswitchd != "":
		return world.Fault{Kind: g.vswitchdHealth.kind, Message: ofVswitchd}
	case ofController != "":
		return world.Fault{Kind: g.controllerHealth.kind, Message: ofController}
	}
	return world.Fault{}
}

// faults returns the faults in effect, given that of every network, if there is one. known is false until the networks
// have been read.
func (g *Guard) faults(ofNode world.Fault) (faults map[string]world.Fault, known bool) {
	if networks, ok := g.vswitch.Networks(); ok {
		g.networks = uplinkFaults(networks)
	}
	if g.networks == nil {
		return nil, false
	}
	now := maps.Clone(g.networks)
	if ofNode.Message != "" {
		now[world.EveryNetwork] = ofNode
	}
	return g.faultHistory.observe(time.Now(), now), true
}
