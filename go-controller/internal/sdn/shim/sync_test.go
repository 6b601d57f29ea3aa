// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var (
	shard   = world.ShardID{Domain: "lan"}
	service = world.Key{Namespace: "shop", Name: "web"}
	vip     = netip.MustParseAddr("192.0.2.1")
)

// fakeAgent confirms each version of its Node, except for the addresses in failed.
type fakeAgent struct {
	healthpb.UnimplementedHealthServer
	at netip.AddrPort
	// onWatch is called when the agent is asked.
	onWatch func()

	mu sync.Mutex
	// unfit is the answer of Check, and broken that of Watch if it is set.
	unfit, broken error
	// hangs is true if there is no answer of Watch, and stuck if there is none of Check.
	hangs, stuck bool
	failed       map[netip.Addr]string
	asked        int
	// changed is closed by the next call of set.
	changed chan struct{}
}

// set changes the agent.
func (a *fakeAgent) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *fakeAgent) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	a.mu.Lock()
	stuck := a.stuck
	a.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err := grpc.SetHeader(ctx, metadata.Pairs(revision.FailedHeader, revision.Fingerprint(a.failed)))
	if err != nil {
		return nil, err
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, a.unfit
}

func (a *fakeAgent) Watch(_ *healthpb.HealthCheckRequest,
	stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	a.onWatch()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	for a.hangs {
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-stream.Context().Done():
		case <-changed:
		}
		a.mu.Lock()
		if err := stream.Context().Err(); err != nil {
			return err
		}
	}
	if a.broken != nil {
		return a.broken
	}
	if len(a.failed) == 0 {
		return stream.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING})
	}
	text, err := json.Marshal(a.failed)
	if err != nil {
		return err
	}
	return status.Error(codes.FailedPrecondition, string(text))
}

// refuse makes the agent report that it can't hold addresses.
func (a *fakeAgent) refuse(addrs ...netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = map[netip.Addr]string{}
	for _, addr := range addrs {
		a.failed[addr] = "the interface has it, and not from here"
	}
}

func startAgent(t *testing.T, n *network) *fakeAgent {
	t.Helper()
	a := &fakeAgent{onWatch: func() {}, changed: make(chan struct{})}
	a.at = n.serve(t, a)
	return a
}

// running is a Dataplane that runs until the test ends. Its nodes n1 and n2 have an agent each.
type running struct {
	*testing.T
	*Dataplane
	client *fake.Clientset
	n1, n2 *fakeAgent

	mu sync.Mutex
	// changes and drifts count the calls of Options.Changed and Drifted, and repetitions some of Repeat.
	changes, drifts, repetitions int
	// onDrift and onRepeat are Options.Drifted and Repeat, and settled are the keys in the calls of Options.Confirmed.
	onDrift  func() bool
	onRepeat func([]world.Key)
	settled  []world.Key
	// writes to a node fail with the error in writeErrors.
	writeErrors map[string]error
	writes      int
	// onWrite is called while a node is written. version is the newest version of any node.
	onWrite func(node string)
	version int

	// runner applies plans; nil unless during has started it.
	runner *loop.Runner
	plans  map[world.Key]*plan.Service
}

// start starts a Dataplane whose methods the test calls itself.
func start(t *testing.T) *running {
	n := newNetwork()
	c := &running{T: t, n1: startAgent(t, n), n2: startAgent(t, n), client: fake.NewClientset(),
		onDrift: func() bool { return true }, onRepeat: func([]world.Key) {}, writeErrors: map[string]error{},
		onWrite: func(string) {}, version: 100}
	c.client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok {
			return false, nil, nil
		}
		version := c.newVersion()
		c.onWrite(patch.GetName())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.writes++
		return true, &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}, c.writeErrors[patch.GetName()]
	})
	c.Dataplane = New(Options{
		Nodes:   c.client.CoreV1().Nodes(),
		Changed: func() { c.set(func() { c.changes++ }) },
		Drifted: func() bool {
			c.set(func() { c.drifts++ })
			return c.onDrift()
		},
		Repeat:    func(keys []world.Key) { c.onRepeat(keys) },
		Confirmed: func(keys []world.Key) { c.set(func() { c.settled = append(c.settled, keys...) }) },
	})
	c.prober.dial = n.dial
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = c.Dataplane.Run(ctx) }()
	synctest.Wait()
	c.changes = 0
	return c
}

// set changes what the reactors and hooks read, or have recorded.
func (c *running) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// newVersion returns a version of a node that is newer than all others.
func (c *running) newVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return strconv.Itoa(c.version)
}

// observe shows the dataplane nodes, and returns the states of shards.
func (c *running) observe(nodes ...*world.Node) map[world.ShardID]world.ShardState {
	w := &world.Snapshot{Nodes: nodes}
	c.Observe(w)
	return w.ShardStates
}

// node returns a Node whose annotation has addresses.
func node(name, version string, agent *fakeAgent, addrs ...netip.Addr) *world.Node {
	k := &world.Kernel{Version: version, Agent: agent.at}
	for _, a := range addrs {
		k.Held = append(k.Held, world.Held{Addr: a, Service: service, Generation: 1, Shard: shard})
	}
	return &world.Node{Name: name, Chassis: name, Kernel: k}
}

// gateways returns a topology in which a node is the gateway of the shard.
func gateways(node string) *plan.Topology {
	return &plan.Topology{Domains: []plan.Domain{{Name: shard.Domain, Shards: []plan.Shard{{
		ID: shard, Gateways: []plan.Gateway{{Node: node, Chassis: node}}}}}}}
}

// has reports whether a node is assigned an address.
func (c *running) has(node string, a netip.Addr) bool {
	c.Dataplane.mu.Lock()
	defer c.Dataplane.mu.Unlock()
	return c.have.Has(node, a)
}

// configure configures a topology and waits for the answers of nodes.
func (c *running) configure(topology *plan.Topology) {
	c.Helper()
	if err := c.Configure(c.Context(), topology); err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
}

// planned returns a plan with addresses.
func planned(key world.Key, in world.ShardID, addrs ...netip.Addr) *plan.Service {
	p := &plan.Service{Key: key}
	for _, a := range addrs {
		p.VIPs = append(p.VIPs, plan.VIP{Addr: a, Shard: in})
	}
	return p
}

// apply applies the Service, with addresses, until all nodes have answered, and returns its error.
func (c *running) apply(addrs ...netip.Addr) error {
	p := planned(service, shard, addrs...)
	for {
		repeated := false
		c.onRepeat = func([]world.Key) { repeated = true }
		err := c.Apply(c.Context(), []dataplane.Change{{Key: service, Want: p}})[service]
		synctest.Wait()
		if !repeated {
			return err
		}
	}
}

func TestFailedRewriteOfUnreadableAnnotationIsRepeated(t *testing.T) {
	synctest.Test(t, testFailedRewriteOfUnreadableAnnotationIsRepeated)
}

func testFailedRewriteOfUnreadableAnnotationIsRepeated(t *testing.T) {
	c := start(t)
	c.observe(node("n1", "1", c.n1, vip))
	c.configure(gateways("n1"))
	if err := c.apply(vip); err != nil {
		t.Fatal(err)
	}
	unreadable := node("n1", "2", c.n1)
	unreadable.Kernel.Problem = "not JSON"
	c.observe(unreadable)
	c.writeErrors["n1"], c.writes = errors.New("the API server is away"), 0
	if err := c.Configure(t.Context(), gateways("n1")); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("a write has failed: %v", err)
	}
	delete(c.writeErrors, "n1")
	for range 2 { // the second one has nothing left to write
		c.configure(gateways("n1"))
	}
	if c.writes != 2 {
		t.Errorf("%d writes, want one that fails and one that does not", c.writes)
	}
}

func TestUnconfirmedAddressOfDeletedNodeIsForgotten(t *testing.T) {
	synctest.Test(t, testUnconfirmedAddressOfDeletedNodeIsForgotten)
}

func testUnconfirmedAddressOfDeletedNodeIsForgotten(t *testing.T) {
	c := start(t)
	c.observe(node("n1", "1", c.n1), node("n2", "1", c.n2))
	c.configure(gateways("n1"))
	c.n1.refuse(vip)
	if err := c.apply(vip); err == nil || !strings.Contains(err.Error(), "address 192.0.2.1 on node n1") {
		t.Errorf("n1 does not hold the address: %v", err)
	}
	c.observe(node("n2", "1", c.n2))
	c.configure(gateways("n2"))
	if err := c.apply(vip); err != nil {
		t.Errorf("n2 holds the address: %v", err)
	}
}

// A new controller asks each node once, and writes nothing. Until then the annotations tell which gateways are active.
func TestNewControllerAsksNodesWhatTheyHold(t *testing.T) {
	synctest.Test(t, testNewControllerAsksNodesWhatTheyHold)
}

func testNewControllerAsksNodesWhatTheyHold(t *testing.T) {
	c := start(t)
	see := func(when string) {
		t.Helper()
		got := c.observe(node("n1", "1", c.n1, vip), node("n2", "1", c.n2))[shard]
		if got.Active != "n1" || !got.Settled {
			t.Errorf("%s: %+v", when, got)
		}
	}
	see("at the start")
	c.n1.onWatch = func() { see("while n1 is asked") }
	c.configure(gateways("n1"))
	if err := c.apply(vip); err != nil {
		t.Error(err)
	}
	see("at the end")
	if c.n1.asked != 1 || c.n2.asked != 0 || c.writes != 0 || c.changes != 0 || c.drifts != 0 {
		t.Errorf("asked n1 %d times and n2 %d times, %d writes, %d changes, %d drifts", c.n1.asked, c.n2.asked, c.writes,
			c.changes, c.drifts)
	}
}

func TestNewControllerReportsAddressThatNodeDoesNotHold(t *testing.T) {
	synctest.Test(t, testNewControllerReportsAddressThatNodeDoesNotHold)
}

func testNewControllerReportsAddressThatNodeDoesNotHold(t *testing.T) {
	c := start(t)
	c.n1.refuse(vip)
	c.observe(node("n1", "1", c.n1, vip))
	c.configure(gateways("n1"))
	if err := c.apply(vip); err == nil || !strings.Contains(err.Error(), "not from here") || c.writes > 0 {
		t.Errorf("n1 does not hold its address: %v, %d writes", err, c.writes)
	}
	if got := c.observe(node("n1", "1", c.n1, vip))[shard]; got.Active != "" || got.Settled || c.changes != 1 {
		t.Errorf("n1 does not hold its address: %+v, %d changes", got, c.changes)
	}
}

// A kubelet that writes an annotation again and again that can't be parsed doesn't fill the log.
func TestUnreadableAnnotationIsLoggedOncePerPause(t *testing.T) {
	synctest.Test(t, testUnreadableAnnotationIsLoggedOncePerPause)
}

func testUnreadableAnnotationIsLoggedOncePerPause(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	defer klog.CaptureState().Restore()
	klog.SetLogger(logger)
	c := start(t)
	log, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the logs can't be read")
	}
	for i := range 150 {
		unreadable := node("n1", strconv.Itoa(i+1), c.n1)
		unreadable.Kernel.Problem = fmt.Sprintf("not JSON: %d", i)
		c.observe(unreadable)
		pass(logPause / 100)
	}
	if got := strings.Count(log.GetBuffer().String(), "not JSON"); got != 2 {
		t.Errorf("%d lines in %s, want 2", got, logPause*3/2)
	}
	if !c.unreadable["n1"] {
		t.Error("the annotation is not rewritten")
	}
}
