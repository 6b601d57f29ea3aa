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

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// renewEvery is the interval between renewals of our addresses.
	renewEvery = lifetime / 4
	// farewell is how long a terminating agent waits for its addresses to be taken over.
	farewell = 5 * time.Second
	// listenEvery is the interval between attempts to listen on an address that is in use.
	listenEvery = time.Second
	// askTimeout limits a request for the Node besides the watch.
	askTimeout = 2 * time.Second
)

// Options configure an Agent.
type Options struct {
	// Node is the name of the Node on which the agent runs.
	Node string
	// Kube reads the Node and writes the node's report and Events.
	Kube kubernetes.Interface
	// Health is the listen address for gRPC health checks, HOST:PORT. Without a host the agent listens on all
	// addresses, and the controller uses the first internal address of the Node.
	Health string
	// Registerer registers the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Agent manages the addresses of one node.
type Agent struct {
	options   Options
	health    *health
	reconcile *reconciler
	answers   *answers
	report    *nodelease.Reporter
	metrics   *metrics
	nodes     chan *corev1.Node // a nil Node means that it does not exist
	changed   chan struct{}
	applied   atomic.Bool
	events    record.EventRecorder
	// stepped is when the last step was completed, or the last wait for the Node.
	stepped time.Time
	// read is the version of the Node that was read besides the watch, and readAt when, until the watch has delivered it
	// or a later one. watched is what the watch has delivered last.
	read, watched string
	readAt        time.Time
}

// New returns an Agent. It does nothing before Run.
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
	report, err := nodelease.New(o.Kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace),
		o.Kube.CoreV1().Nodes(), o.Node, "sdn", o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("sdn agent of node %s: %w", o.Node, err)
	}
	h := newHealth()
	return &Agent{options: o, health: h, reconcile: newReconciler(m), answers: newAnswers(o.Health, h), report: report,
		metrics: m,
		nodes:   make(chan *corev1.Node), changed: make(chan struct{}, 1)}, nil
}

// Healthy returns what the agent is waiting for, or nil.
func (a *Agent) Healthy() error {
	if !a.applied.Load() {
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

// Run applies the annotation until the context ends. Then it requests a takeover of its addresses, and removes
// them once they have been, or after a timeout. If no health check was answered with the agent's termination, it
// leaves the addresses in place until their lifetime expires: an agent that returns within that time keeps them.
func (a *Agent) Run(ctx context.Context) error {
	stop, err := watchLinks(a.wake)
	if err != nil {
		return fmt.Errorf("follow the kernel's interfaces: %w", err)
	}
	defer stop()
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	broadcaster := record.NewBroadcaster(record.WithContext(working))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: a.options.Kube.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "ovnkube-slb-node",
		Host: a.options.Node})

	var running sync.WaitGroup
	running.Go(func() {
		kube.NewOneNodeInformer(a.options.Kube, a.options.Node, func(_, now *corev1.Node) {
			select {
			case a.nodes <- now:
			case <-working.Done():
			}
		}).RunWithContext(working)
	})
	running.Go(func() { a.report.Run(working) })
	a.work(ctx, working)
	end()
	running.Wait()
	if !a.health.endAnnounced() {
		klog.InfoS("No client received the final health response, addresses stay until their lifetime ends", "lifetime",
			lifetime)
		return nil
	}
	return a.reconcile.clear()
}

// work is the main loop. It ends some time after ctx.
func (a *Agent) work(ctx, working context.Context) {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	report := time.NewTimer(0)
	report.Stop()
	defer report.Stop()
	defer a.answers.stop()
	var over <-chan time.Time
	ending := ctx.Done()
	if err := a.reconcile.find(); err != nil {
		klog.ErrorS(err, "Failed to list network interfaces, addresses of an earlier agent are not adopted")
	}
	renewing := true // the kernel may be about to remove the addresses of the previous agent
	a.stepped = time.Now()
	for {
		switch {
		case !a.reconcile.known && over != nil:
			return
		case !a.reconcile.known:
			renewing = !a.wait(working, renewing) && renewing
			a.stepped = time.Now()
		default:
			renewing = !a.step(working, renewing) && renewing
			if next := a.announce(); !next.IsZero() {
				report.Reset(time.Until(next))
			}
			if over != nil && len(a.reconcile.want) == 0 {
				return
			}
			a.answers.listen(working)
			a.applied.Store(true)
		}
		select {
		case <-over:
			return
		case <-ending:
			ending = nil
			timer := time.NewTimer(farewell)
			defer timer.Stop()
			over = timer.C
			a.reconcile.ending = true
		case n := <-a.nodes:
			a.observe(n)
		case <-a.changed:
		case <-renew.C:
			renewing = true
		case <-report.C:
		case <-a.answers.again:
		}
	}
}

// wait keeps the addresses in the kernel until the Node has been read. It does so only while the controller's health
// checks are answered: if the controller finds that no agent runs, it relies on the kernel to remove the addresses,
// and then assigns them to another node. It renews the addresses if that is due or if the health server has only just
// started, and reports whether it did.
func (a *Agent) wait(ctx context.Context, due bool) (renewed bool) {
	began := a.answers.Healthy() != nil
	if len(a.reconcile.found) == 0 || !a.answers.listen(ctx) {
		return false
	}
	if _, err := a.reconcile.readLinks(); err != nil {
		klog.ErrorS(err, "Failed to list network interfaces, will retry")
		return false
	}
	if renewed = due || began; renewed {
		a.reconcile.keep()
	}
	a.health.set(a.reconcile.unfit(), "", nil)
	a.metrics.held.Set(float64(a.reconcile.count()))
	return renewed
}

// step makes the kernel match the desired state and publishes the result. It reports whether it did: a renewal that
// failed because the kernel could not be read is still due.
//
// If the last step was longer ago than addresses live, the agent stood still, and other nodes may have what it last
// knew to be its own. Then it reads the Node first: the watch may deliver only later what has changed.
func (a *Agent) step(ctx context.Context, renew bool) (applied bool) {
	if !a.reconcile.outdated && stoodStill(a.stepped, time.Now()) {
		klog.InfoS("The agent stood still, reading the Node before it adds addresses", "since", a.stepped)
		a.reconcile.outdated = true
	}
	if a.reconcile.outdated {
		a.reconcile.outdated = !a.readNode(ctx)
	}
	returned, err := a.reconcile.readLinks()
	if err != nil {
		klog.ErrorS(err, "Failed to list network interfaces, will retry")
		return false
	}
	if returned {
		a.readNode(ctx)
	}
	a.reconcile.apply(renew || a.reconcile.outdated) // reading the Node may take as long as addresses live
	a.stepped = time.Now()
	a.metrics.wanted.Set(float64(len(a.reconcile.want)))
	a.metrics.held.Set(float64(a.reconcile.count()))
	a.health.set(a.reconcile.unfit(), a.reconcile.version, a.reconcile.failed)
	if health, ok := a.healthAddress(); ok {
		a.reportStatus(health)
	}
	return true
}

// stoodStill reports whether our addresses that were last renewed at a time may have expired. While a virtual machine
// is paused, only the wall clock may go on.
func stoodStill(last, now time.Time) bool {
	return now.Sub(last) >= lifetime || now.Round(0).Sub(last.Round(0)) >= lifetime
}

// announce sends the announcements of addresses that are due and returns when the next one is due, or the zero time.
// What may be another node's is not announced.
func (a *Agent) announce() (next time.Time) {
	if a.reconcile.outdated {
		return time.Time{}
	}
	return a.reconcile.claims.make(time.Now())
}

// readNode reads the Node again, and reports whether it did. If the API server does not answer, the addresses that the
// kernel has are held nevertheless.
func (a *Agent) readNode(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	n, err := a.options.Kube.CoreV1().Nodes().Get(ctx, a.options.Node, metav1.GetOptions{})
	if err != nil {
		klog.ErrorS(err, "Failed to read the Node again, keeping the last assignment", "node", a.options.Node)
		return false
	}
	a.take(n)
	if a.read = ""; revision.Newer(n.ResourceVersion, a.watched) {
		a.read, a.readAt = n.ResourceVersion, time.Now()
	}
	return true
}

// healthAddress returns the address that the controller must use for health checks.
func (a *Agent) healthAddress() (netip.AddrPort, bool) {
	host, port, err := net.SplitHostPort(a.options.Health)
	if err != nil {
		return netip.AddrPort{}, false
	}
	if host == "" {
		host = a.reconcile.address
	}
	at, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	return at, err == nil
}

// maxWatchDelay is how long the watch is taken to be behind what was read besides it. Versions that are older after
// that are those of an API server whose etcd was restored from a backup.
const maxWatchDelay = time.Minute

// observe applies a version of the Node that the watch has delivered, unless a later one was read meanwhile.
func (a *Agent) observe(n *corev1.Node) {
	if n != nil {
		a.watched = n.ResourceVersion
		if revision.Newer(a.read, n.ResourceVersion) && time.Since(a.readAt) < maxWatchDelay {
			return
		}
		a.read = ""
	}
	a.take(n)
}

// take applies a version of the Node.
func (a *Agent) take(n *corev1.Node) {
	if n == nil {
		klog.InfoS("Node does not exist, removing all addresses", "node", a.options.Node)
		a.reconcile.setWanted(nil, "")
		return
	}
	for _, addr := range n.Status.Addresses {
		if addr.Type == corev1.NodeInternalIP {
			a.reconcile.address = addr.Address
			break
		}
	}
	if err := a.reconcile.read(n); err != nil {
		klog.ErrorS(err, "Keeping current addresses", "node", n.Name)
		a.events.Event(n, corev1.EventTypeWarning, eventUnreadable, err.Error()+"; what is held stays as it is")
	}
}

// reportStatus publishes the health check address and the interfaces in the Lease of the node. Whether the agent is
// alive is determined by its health checks.
func (a *Agent) reportStatus(health netip.AddrPort) {
	text, err := json.Marshal(convert.Agent{Health: health, Interfaces: a.reconcile.interfaces(),
		Singles: a.reconcile.singles()})
	if err != nil {
		klog.ErrorS(err, "Failed to encode the report")
		return
	}
	a.report.Report(v1alpha1.AnnotationAgent, string(text), false)
}
