// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// minPause combines events in quick succession into one computation. restShare limits the share of the time spent
	// on computations, and maxPause the delay of the next one, which may be that of another tenant.
	minPause, maxPause = 20 * time.Millisecond, 2 * time.Second
	restShare          = 9
)

// Options configure an Agent.
type Options struct {
	// Node is the name of the Node on which the agent runs.
	Node string
	// Kube and Config are for the API server.
	Kube   kubernetes.Interface
	Config *rest.Config
	// Services defines which Services we handle.
	Services convert.Options
	// Registerer registers the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Agent runs the BGP sessions of one node.
type Agent struct {
	options Options
	facts   *kube.Facts
	watch   *kube.Watch
	speaker *speaker.Speaker
	paths   *watch.Watcher
	status  *nodeStatus
	turn    *turn
	changed chan struct{}
	decided atomic.Bool
	// deciding is the heartbeat of a pass; between two passes, none is expected.
	deciding loop.Heartbeat
}

// New returns an Agent. It does nothing before Run.
func New(o Options) (*Agent, error) {
	if o.Node == "" || o.Kube == nil || o.Config == nil {
		return nil, errors.New("bgp: a node and clients of the API server are needed")
	}
	clients, err := kube.NewClients(o.Config)
	if err != nil {
		return nil, err
	}
	a := &Agent{options: o, changed: make(chan struct{}, 1)}
	a.facts = kube.NewFacts(o.Services, kube.Hooks{
		Wake:    a.wake,
		Changed: func(world.Key) {},
		// An address is advertised only when the API server shows it.
		Expected: func(world.Key, []netip.Addr) bool { return false },
	})
	a.watch = kube.NewNodeWatch(o.Kube, clients, a.facts, o.Node)
	writes, err := registerWrites(o.Registerer)
	if err != nil {
		return nil, err
	}
	a.status = newStatus(o.Node, clients.NodeStatuses, a.facts, writes)
	a.paths = watch.New(func(peer string, _ watch.Session) {
		a.speaker.Changed(peer)
		a.status.wake()
	})
	a.turn = newTurn(o.Node, o.Kube.CoordinationV1().Leases(v1alpha1.PasswordsNamespace), func(peer string) {
		a.speaker.Changed(peer)
	})
	a.speaker = speaker.New(speaker.Options{BFD: Paths{a.paths}, Turn: a.turn, Notify: a.status.wake})
	a.status.states, a.status.unread = a.speaker.States, a.unread
	if o.Registerer == nil {
		return a, nil
	}
	if err := o.Registerer.Register(&collector{a.speaker.States}); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := kube.RegisterUnreadKinds(o.Registerer, a.watch.UnreadKinds); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Agent) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// unread returns the resources that have been unread for two minutes, although others were read, and that decide which
// addresses a node advertises, sorted. Others decide about sessions and attributes of routes.
func (a *Agent) unread() []string {
	decide := []string{"services", "endpointslices", "nodes", "namespaces", "ipaddresspools", "l2domains", "bgppeers",
		"bgpadvertisements"}
	unread := slices.Sorted(maps.Keys(a.watch.UnreadAlone()))
	return slices.DeleteFunc(unread, func(resource string) bool { return !slices.Contains(decide, resource) })
}

// Healthy returns an error that names what the agent still waits for.
func (a *Agent) Healthy() error {
	if err := a.watch.Healthy(); err != nil {
		return err
	}
	if !a.decided.Load() {
		return errors.New("the first pass has not completed")
	}
	return nil
}

// Alive returns an error if a pass has taken longer than stall, or the reports had no heartbeat for as long. Only a
// restart helps then.
func (a *Agent) Alive(stall time.Duration) error {
	return loop.Stalled(stall, map[string]*loop.Heartbeat{
		"the pass over all sessions": &a.deciding, "the report of sessions": &a.status.reporting})
}

// Run runs the agent until the context ends, and until the last report is written. The sessions stay open meanwhile.
func (a *Agent) Run(stop context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(stop))
	defer end()
	running, ctx := errgroup.WithContext(life)
	part := func(run func(context.Context)) {
		running.Go(func() error {
			run(ctx)
			return nil
		})
	}
	part(a.watch.Run)
	if err := a.watch.WaitForSync(stop); err != nil {
		end()
	} else {
		a.decide()
		part(a.decideOnChanges)
		part(a.status.run)
		part(a.turn.run)
		running.Go(func() error { return a.watchPaths(ctx) })
		running.Go(func() error { return a.speaker.Run(ctx) })
		part(func(ctx context.Context) {
			defer end()
			select {
			case <-stop.Done():
				a.status.stop(ctx)
			case <-ctx.Done(): // a part has failed
			}
		})
	}
	return running.Wait()
}

// watchPaths runs BFD until the process ends, not only until the context does. BGP sessions end with the process, and a
// router that lost BFD before them would not keep their routes.
func (a *Agent) watchPaths(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- a.paths.Run(context.WithoutCancel(ctx)) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// decideOnChanges recomputes the sessions after each change.
func (a *Agent) decideOnChanges(ctx context.Context) {
	kube.Rounds(ctx, a.changed, func() (rest, again time.Duration) {
		start := time.Now()
		a.decide()
		return min(max(minPause, restShare*time.Since(start)), maxPause), 0
	})
}

// decide passes the sessions computed from the current snapshot to the speaker.
func (a *Agent) decide() {
	a.deciding.Beat()
	defer a.deciding.Stop()
	w, _ := a.facts.Snapshot(world.Cluster{})
	w.Now = time.Now()
	layout := compute(w)
	sessions := own(layout.For(a.options.Node))
	a.speaker.Set(sessions)
	a.status.set(sessions, layout.Off())
	if !a.decided.Swap(true) {
		klog.InfoS("Updated desired BGP sessions", "node", a.options.Node, "sessions", len(sessions))
	}
}

// Sessions computes the sessions of a node from a snapshot that contains no other node.
func Sessions(w *world.Snapshot, node string) []bgp.Session { return own(compute(w).For(node)) }

// own returns the sessions that this daemon has: not those of frr-k8s.
func own(sessions []bgp.Session) []bgp.Session {
	return slices.DeleteFunc(sessions, func(s bgp.Session) bool { return s.FRRK8s })
}

func compute(w *world.Snapshot) *bgp.Layout {
	layout := place.Compute(w)
	return bgp.NewLayout(w, ipam.Allocate(w, layout.ShardOf), layout.ConfiguredShardOf)
}

func registerWrites(r prometheus.Registerer) (kube.Wrote, error) {
	writes := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "status_writes_total",
		Help: "Status writes sent to the API server, by kind and result (ok, conflict, gone, error)."},
		[]string{"kind", "result"})
	if r != nil {
		if err := r.Register(writes); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return func(kind string, err error) { writes.WithLabelValues(kind, kube.WriteResult(kind, err)).Inc() }, nil
}

// Paths adapts a watch.Watcher to speaker.BFD.
type Paths struct{ *watch.Watcher }

var _ speaker.BFD = Paths{}

// Watch implements speaker.BFD.
func (p Paths) Watch(name string, path speaker.Path) {
	p.Watcher.Watch(name, watch.Target{Peer: path.Peer, Local: path.Local, Interface: path.Interface,
		Settings: bfd.Settings(path.BFD)})
}

// Session implements speaker.BFD.
func (p Paths) Session(name string) speaker.Liveness {
	s, watched := p.Watcher.Session(name)
	if !watched {
		return speaker.Liveness{}
	}
	is := speaker.Liveness{State: s.State.String(), Up: s.State == bfd.Up, Since: s.Since, Received: s.Detection > 0,
		Failures: s.Failures}
	if s.Err != nil {
		is.Problem = s.Err.Error()
	}
	return is
}
