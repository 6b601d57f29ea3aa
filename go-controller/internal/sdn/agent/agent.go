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

	"github.com/prometheus/client_golang/prometheus"
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
	// listenEvery is the time between two attempts to listen at an address that is in use.
	listenEvery = time.Second
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
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Agent holds the addresses of one node.
type Agent struct {
	options Options
	health  *health
	obey    *obeyer
	answers *answers
	report  *nodelease.Reporter
	metrics *metrics
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
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("sdn agent of node %s: %w", o.Node, err)
	}
	report, err := nodelease.New(o.Kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace), o.Node, "sdn", o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("sdn agent of node %s: %w", o.Node, err)
	}
	h := newHealth()
	return &Agent{options: o, health: h, obey: newObeyer(m), answers: newAnswers(o.Health, h), report: report, metrics: m,
		nodes: make(chan *corev1.Node), changed: make(chan struct{}, 1)}, nil
}

// Healthy tells what the agent waits for.
func (a *Agent) Healthy() error {
	if !a.obeyed.Load() {
		return fmt.Errorf("node %s was not read yet", a.options.Node)
	}
	return a.answers.Healthy()
}

func (a *Agent) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run obeys until the context ends. Then it asks for its addresses to be taken over, and
// removes them when they are, or when it has waited long enough. If no health check was answered with its end, it
// leaves them to their lifetime: an agent that comes back within that keeps them.
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
	a.work(ctx, working)
	end()
	running.Wait()
	if !a.health.endAnnounced() {
		klog.InfoS("No health check was answered with the end: addresses stay until their lifetime is over", "lifetime", lifetime)
		return nil
	}
	return a.obey.clear()
}

// work is the loop; it ends a while after ctx.
func (a *Agent) work(ctx, working context.Context) {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	tell := time.NewTimer(0)
	tell.Stop()
	defer tell.Stop()
	defer a.answers.stop()
	var over <-chan time.Time
	ending := ctx.Done()
	if err := a.obey.find(); err != nil {
		klog.ErrorS(err, "Read the kernel's interfaces; what an agent before this one left is not kept")
	}
	renewing := true // the kernel may be about to give up what the agent before left
	for {
		switch {
		case !a.obey.told && over != nil:
			return
		case !a.obey.told:
			renewing = !a.wait(working, renewing) && renewing
		default:
			a.step(working, renewing)
			if next := a.obey.claims.make(time.Now()); !next.IsZero() {
				tell.Reset(time.Until(next))
			}
			if over != nil && len(a.obey.want) == 0 {
				return
			}
			a.answers.listen(working)
			a.obeyed.Store(true)
			renewing = false
		}
		select {
		case <-over:
			return
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
		case <-a.answers.again:
		}
	}
}

// wait keeps what the kernel holds as long as the Node was not read. Only while the controller gets answers: one that finds
// that no agent runs counts on the kernel to give the addresses up, and then has another node hold them. It reports whether what
// is held was renewed, and does so if it is due or if the answers have only just begun.
func (a *Agent) wait(ctx context.Context, due bool) (renewed bool) {
	began := a.answers.Healthy() != nil
	if len(a.obey.found) == 0 || !a.answers.listen(ctx) {
		return false
	}
	if _, err := a.obey.look(); err != nil {
		klog.ErrorS(err, "Read the kernel's interfaces; it is tried again")
		return false
	}
	if renewed = due || began; renewed {
		a.obey.keep()
	}
	a.health.set(a.obey.unfit(), "", nil)
	a.metrics.held.Set(float64(a.obey.count()))
	return renewed
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
	a.metrics.wanted.Set(float64(len(a.obey.want)))
	a.metrics.held.Set(float64(a.obey.count()))
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

// tell says in the Lease of the node where the agent answers and which interfaces there are. Whether it lives is seen at its health.
func (a *Agent) tell(health netip.AddrPort) {
	text, err := json.Marshal(convert.Agent{Health: health, Interfaces: a.obey.interfaces()})
	if err != nil {
		klog.ErrorS(err, "Report")
		return
	}
	a.report.Tell(v1alpha1.AnnotationAgent, string(text), false)
}
