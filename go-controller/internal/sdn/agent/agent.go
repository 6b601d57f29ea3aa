// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// renewEvery is the time between two renewals of our addresses.
	renewEvery = lifetime / 4
	// farewell is how long an agent that shall end waits for its addresses to be taken over.
	farewell = 5 * time.Second
	// askTimeout is how long the API server has for an answer when a link came back.
	askTimeout = 2 * time.Second
)

// Options configure an Agent.
type Options struct {
	// Node is the name of the Node that the agent runs on.
	Node string
	// Kube reads the Node and writes the node's report and Events.
	Kube kubernetes.Interface
	// Health is where the agent answers gRPC's health checks, HOST:PORT. Without a host it does
	// so everywhere, and the controller asks at the first internal address of the Node.
	Health string
}

// Agent holds the addresses of one node.
type Agent struct {
	options Options
	health  *health
	obey    *obeyer
	report  *nodelease.Reporter
	nodes   chan *corev1.Node // nil in it: there is no such Node
	changed chan struct{}
	obeyed  atomic.Bool
	events  record.EventRecorder
}

// New returns an Agent that does nothing before Run.
func New(o Options) (*Agent, error) {
	if o.Node == "" || o.Kube == nil {
		return nil, errors.New("sdn agent: a node and a client are needed")
	}
	if _, _, err := net.SplitHostPort(o.Health); err != nil {
		return nil, fmt.Errorf("sdn agent of node %s: address for health checks %q: %w", o.Node, o.Health, err)
	}
	return &Agent{options: o, health: newHealth(), obey: newObeyer(), report: nodelease.New(o.Kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace), o.Node),
		nodes: make(chan *corev1.Node), changed: make(chan struct{}, 1)}, nil
}

// Healthy tells what the agent waits for.
func (a *Agent) Healthy() error {
	if !a.obeyed.Load() {
		return fmt.Errorf("node %s was not read yet", a.options.Node)
	}
	return nil
}

func (a *Agent) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run obeys until the context ends. Then it asks for its addresses to be taken over, and
// removes them when they are, or when it has waited long enough.
func (a *Agent) Run(ctx context.Context) error {
	stop, err := follow(a.wake)
	if err != nil {
		return fmt.Errorf("follow the kernel's interfaces: %w", err)
	}
	defer stop()
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	broadcaster := record.NewBroadcaster(record.WithContext(working))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: a.options.Kube.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "ovnkube-slb-node", Host: a.options.Node})

	var running sync.WaitGroup
	running.Go(func() { watchNode(working, a.options.Kube, a.options.Node, a.nodes) })
	running.Go(func() { a.report.Run(working) })
	err = a.work(ctx, working)
	end()
	running.Wait()
	return errors.Join(err, a.obey.clear())
}

// work is the loop; it ends a while after ctx.
func (a *Agent) work(ctx, working context.Context) error {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	tell := time.NewTimer(0)
	tell.Stop()
	defer tell.Stop()
	var over <-chan time.Time
	ending := ctx.Done()
	serving := make(chan error, 1)
	var server *grpc.Server
	defer func() {
		if server != nil {
			server.Stop()
		}
	}()
	for {
		renewing := false
		select {
		case err := <-serving:
			return fmt.Errorf("answer health checks at %s: %w", a.options.Health, err)
		case <-over:
			return nil
		case <-ending:
			ending = nil
			timer := time.NewTimer(farewell)
			defer timer.Stop()
			over = timer.C
			a.obey.ending = true
		case n := <-a.nodes:
			a.take(n)
		case <-a.changed:
		case <-renew.C:
			renewing = true
		case <-tell.C:
		}
		if !a.obey.told {
			if over != nil {
				return nil
			}
			continue
		}
		a.step(working, renewing)
		if next := a.obey.claims.make(time.Now()); !next.IsZero() {
			tell.Reset(time.Until(next))
		}
		if over != nil && len(a.obey.want) == 0 {
			return nil
		}
		if server == nil {
			var err error
			if server, err = a.serve(working, serving); err != nil {
				return err
			}
			a.obeyed.Store(true)
		}
	}
}

// step makes the kernel as it shall be, and tells what came of it.
func (a *Agent) step(ctx context.Context, renew bool) {
	returned, err := a.obey.look()
	if err != nil {
		klog.ErrorS(err, "Read the kernel's interfaces; it is tried again")
		return
	}
	if returned {
		a.ask(ctx)
	}
	a.obey.apply(renew)
	a.health.set(a.obey.unfit(), a.obey.version, a.obey.failed)
	if health, ok := a.healthAddress(); ok {
		a.tell(health)
	}
}

// ask reads the Node anew. An API server that does not answer is no reason to hold nothing.
func (a *Agent) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	n, err := a.options.Kube.CoreV1().Nodes().Get(ctx, a.options.Node, metav1.GetOptions{})
	if err != nil {
		klog.ErrorS(err, "The Node can't be read after a link came back; what it said last counts", "node", a.options.Node)
		return
	}
	a.take(n)
}

// healthAddress is where the controller shall ask.
func (a *Agent) healthAddress() (netip.AddrPort, bool) {
	host, port, err := net.SplitHostPort(a.options.Health)
	if err != nil {
		return netip.AddrPort{}, false
	}
	if host == "" {
		host = a.obey.address
	}
	at, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	return at, err == nil
}

// take adopts a version of the Node.
func (a *Agent) take(n *corev1.Node) {
	if n == nil {
		klog.InfoS("The Node does not exist: nothing is held", "node", a.options.Node)
		a.obey.tell(nil, "")
		return
	}
	for _, addr := range n.Status.Addresses {
		if addr.Type == corev1.NodeInternalIP {
			a.obey.address = addr.Address
			break
		}
	}
	if err := a.obey.read(n); err != nil {
		klog.ErrorS(err, "What is held stays as it is", "node", n.Name)
		a.events.Event(n, corev1.EventTypeWarning, eventUnreadable, err.Error()+"; what is held stays as it is")
	}
}

// serve begins to answer health checks.
func (a *Agent) serve(ctx context.Context, ended chan<- error) (*grpc.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.options.Health)
	if err != nil {
		return nil, fmt.Errorf("listen for health checks: %w", err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, a.health)
	go func() {
		if err := server.Serve(listener); err != nil {
			ended <- err
		}
	}()
	return server, nil
}

// tell says in the Lease of the node where the agent answers and which interfaces there are. Whether it lives is seen at its health.
func (a *Agent) tell(health netip.AddrPort) {
	text, err := json.Marshal(convert.Agent{Health: health, Interfaces: a.obey.interfaces()})
	if err != nil {
		klog.ErrorS(err, "Report")
		return
	}
	a.report.Tell(v1alpha1.AnnotationAgent, string(text), false)
}
