// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

// server is a real ovsdb-server on a database file of its own.
type server struct {
	file, socket string
	process      *exec.Cmd
}

const (
	schema  = "ovn/ovn-nb.ovsschema"
	capture = "testdata/ovn-kubernetes-1.3.nb.db" // NB of OVN-Kubernetes 1.3, OVN 25.09, schema 7.12.0
)

func TestMain(m *testing.M) { os.Exit(ovnprefix.Main(m)) }

// serve starts a server on a copy of a database, or on a new one with a schema (see ovnprefix.Schema).
func serve(t testing.TB, from string) *server {
	t.Helper()
	contract.Test(t, "ovsdb-server", "ovsdb-client", "ovn-nbctl", "ovn-northd")
	dir := t.TempDir()
	s := &server{file: filepath.Join(dir, "nb.db"), socket: filepath.Join(dir, "nb.sock")}
	if strings.HasSuffix(from, ".ovsschema") {
		run(t, "ovsdb-tool", "create", s.file, ovnprefix.Schema(from))
	} else {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *server) start(t testing.TB, options ...string) {
	t.Helper()
	_ = os.Remove(s.socket)
	s.process = exec.Command("ovsdb-server", append(options, s.file, "--remote=punix:"+s.socket,
		"--unixctl="+s.socket+".ctl", "--no-chdir", "-vconsole:off")...)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "ovsdb-server listens", func() bool {
		c, err := net.Dial("unix", s.socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// kill terminates the server with SIGKILL.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// transactions returns the number of transactions ever written, which is the number of records in the file.
func (s *server) transactions(t testing.TB) int {
	t.Helper()
	data, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\nOVSDB JSON "))
}

// dump returns the whole database as text.
func (s *server) dump(t testing.TB) string {
	t.Helper()
	return run(t, "ovsdb-client", "--no-heading", "dump", "unix:"+s.socket, "OVN_Northbound")
}

func (s *server) nbctl(t testing.TB, args ...string) string {
	t.Helper()
	return run(t, "ovn-nbctl", append([]string{"--db=unix:" + s.socket, "--no-leader-only"}, args...)...)
}

// sync waits until ovn-northd has translated all rows.
func (s *server) sync(t testing.TB) {
	t.Helper()
	s.nbctl(t, fmt.Sprintf("--timeout=%.0f", await.Limit.Seconds()), "--wait=sb", "sync")
}

// run returns what a command writes to its standard output: on a busy machine, OVN's tools warn on the other one.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	var warnings strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, warnings.String())
	}
	return strings.TrimSpace(string(out))
}

// clusterRows inserts the rows that OVN-Kubernetes creates for the join network.
func (s *server) clusterRows(t testing.TB) {
	t.Helper()
	clusterRows(t, "--no-leader-only", "--db=unix:"+s.socket)
}

func clusterRows(t testing.TB, options ...string) {
	t.Helper()
	run(t, "ovn-nbctl", append(options, "init")...)
	run(t, "ovn-nbctl", append(options, "lr-add", "ovn_cluster_router", "--", "ls-add", "join",
		"--", "lrp-add", "ovn_cluster_router", "rtoj-ovn_cluster_router", "0a:58:64:40:00:01", "100.64.0.1/16", "fd98::1/64",
		"--", "lsp-add", "join", "jtor-ovn_cluster_router", "--", "lsp-set-type", "jtor-ovn_cluster_router", "router")...)
	for i, n := range nodes() {
		run(t, "ovn-nbctl", append(options, slices.Concat(
			[]string{"lrp-add", "ovn_cluster_router", "rtos-" + n.name, "0a:58:0a:f4:00:0" + strconv.Itoa(i)}, n.subnets,
			[]string{"--", "lr-add", "GR_" + n.name, "--", "lrp-add", "GR_" + n.name, "rtoj-GR_" + n.name,
				"0a:58:64:40:00:0" + strconv.Itoa(i)}, n.join)...)...)
	}
}

type testNode struct {
	name          string
	subnets, join []string
}

// nodes returns the nodes of the captured cluster.
func nodes() []testNode {
	return []testNode{
		{"n1", []string{"10.244.2.1/24", "fd00:10:244:3::1/64"}, []string{"100.64.0.2/16", "fd98::2/64"}},
		{"n2", []string{"10.244.0.1/24", "fd00:10:244:1::1/64"}, []string{"100.64.0.3/16", "fd98::3/64"}},
		{"n3", []string{"10.244.1.1/24", "fd00:10:244:2::1/64"}, []string{"100.64.0.4/16", "fd98::4/64"}},
	}
}

// nodeOf returns the node of a pod. Nodes of a crowd have 256 pods each.
func nodeOf(pod netip.Addr) string {
	for _, n := range nodes() {
		for _, subnet := range n.subnets {
			if netip.MustParsePrefix(subnet).Contains(pod) {
				return n.name
			}
		}
	}
	if b := pod.AsSlice(); pod.Is4() && b[1] < 244 {
		return "many-" + strconv.Itoa(int(b[1])<<8|int(b[2]))
	}
	return ""
}

// dial runs a Dataplane on servers until the test ends and returns it with its events.
func dial(t testing.TB, nb *server, sb ...*server) (*Dataplane, <-chan EventKind) {
	t.Helper()
	o := Options{NB: Endpoint{Address: "unix:" + nb.socket}}
	for _, s := range sb {
		o.SB.Address = "unix:" + s.socket
	}
	return connect(t, o)
}

// connect is dial with Options. A server that has no processor for a while is not lost.
func connect(t testing.TB, o Options) (*Dataplane, <-chan EventKind) {
	t.Helper()
	return connectFor(t, o, time.Hour)
}

// connectFor is connect for a server that may be silent for some time. Changes of that time count after a third of it.
func connectFor(t testing.TB, o Options, inactivity time.Duration) (*Dataplane, <-chan EventKind) {
	t.Helper()
	events := make(chan EventKind, 1000)
	o.Changed = func(w EventKind) {
		select {
		case events <- w:
		default:
		}
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*replica{d.nb, d.sb} {
		if r != nil {
			r.inactivityTimeout.Store(int64(inactivity))
		}
	}
	start(t, d)
	return d, events
}

// start runs d until the test ends, and returns when it is in sync.
func start(t testing.TB, d *Dataplane) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	await.Receive(t, "the replicas are in sync", d.Synced())
}

// topology returns one domain whose shards each have an anchor and three gateways.
func topology(shards int) *plan.Topology {
	f := &plan.Topology{
		Cluster: world.Cluster{ID: "cluster", ClusterSubnets: prefixes("10.244.0.0/16", "fd00:10:244::/48", "10.128.0.0/14")},
		Nodes: []plan.Node{{Name: "n1", Chassis: "c1", Hosts: hosts()}, {Name: "n2", Chassis: "c2"},
			{Name: "n3", Chassis: "c3"}},
		Domains: []plan.Domain{{
			Name: "lan", PhysicalNetwork: "physnet", VLAN: 7, Detect: 200 * time.Millisecond, DetectMultiplier: 3,
			Subnets: []world.Subnet{
				{Prefix: netip.MustParsePrefix("10.50.0.0/16"), Gateway: netip.MustParseAddr("10.50.0.1")},
				{Prefix: netip.MustParsePrefix("fd00:50::/64"), Gateway: netip.MustParseAddr("fd00:50::1")},
			},
		}},
	}
	chassis := []string{"c1", "c2", "c3"}
	for i := range shards {
		s := plan.Shard{ID: world.ShardID{Domain: "lan", Index: i}, Anchors: prefixes(
			fmt.Sprintf("10.50.%d.%d/16", 1+(i+1)>>8, (i+1)&0xff), "fd00:50::1:"+strconv.Itoa(i+1)+"/64")}
		for j := range chassis {
			c := chassis[(i+j)%len(chassis)]
			s.Gateways = append(s.Gateways, plan.Gateway{Node: "node-" + c, Chassis: c})
		}
		f.Domains[0].Shards = append(f.Domains[0].Shards, s)
	}
	return f
}

// hosts returns the addresses of node n1 that can be backends.
func hosts() []world.Host {
	return []world.Host{
		{Addr: netip.MustParseAddr("172.18.0.11"), Masquerade: netip.MustParseAddr("169.254.169.3")},
		{Addr: netip.MustParseAddr("fd00:18::b"), Masquerade: netip.MustParseAddr("fd69::3")},
	}
}

// onHost makes node n1 itself a backend of all listeners of a Service.
func onHost(p *plan.Service) *plan.Service {
	for i, h := range hosts() {
		for j := range p.Listeners {
			if l := &p.Listeners[j]; l.VIP == p.VIPs[i].Addr {
				l.Backends = append(l.Backends, plan.Backend{
					Addr: netip.AddrPortFrom(h.Addr, 9000+l.Port), Node: "n1", HostNetwork: true,
				})
			}
		}
	}
	return p
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// service returns the n-th Service of a test: one dual-stack address, TCP 80 and UDP 53.
func service(n, shards int, backends ...string) *plan.Service {
	shard := world.ShardID{Domain: "lan", Index: n % shards}
	v4 := netip.AddrFrom4([4]byte{10, 50, byte(1 + n>>8), byte(n)})
	v6 := netip.MustParseAddr("fd00:50::1:" + strconv.FormatInt(int64(n), 16))
	p := &plan.Service{
		Key:  world.Key{Namespace: "default", Name: "s" + strconv.Itoa(n)},
		VIPs: []plan.VIP{{Addr: v4, Shard: shard}, {Addr: v6, Shard: shard}},
	}
	for _, l := range []plan.Listener{
		{VIP: v4, Protocol: world.TCP, Port: 80}, {VIP: v4, Protocol: world.UDP, Port: 53},
		{VIP: v6, Protocol: world.TCP, Port: 80}, {VIP: v6, Protocol: world.UDP, Port: 53},
	} {
		for _, b := range backends {
			if a := netip.MustParseAddr(b); a.Is4() == l.VIP.Is4() {
				l.Backends = append(l.Backends, plan.Backend{Addr: netip.AddrPortFrom(a, 8000+l.Port), Node: nodeOf(a)})
			}
		}
		p.Listeners = append(p.Listeners, l)
	}
	return p
}

func apply(t testing.TB, d *Dataplane, plans ...*plan.Service) {
	t.Helper()
	var changes []dataplane.Change
	for _, p := range plans {
		changes = append(changes, dataplane.Change{Key: p.Key, Want: p})
	}
	for key, err := range d.Apply(t.Context(), changes) {
		t.Errorf("apply %s: %v", key, err)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func configure(t testing.TB, d *Dataplane, f *plan.Topology) {
	t.Helper()
	if err := d.Configure(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func shardStates(d *Dataplane) map[world.ShardID]world.ShardState {
	states, _ := d.ShardStates()
	return states
}

func remove(t testing.TB, d *Dataplane, plans ...*plan.Service) {
	t.Helper()
	var changes []dataplane.Change
	for _, p := range plans {
		changes = append(changes, dataplane.Change{Key: p.Key})
	}
	for key, err := range d.Apply(t.Context(), changes) {
		t.Fatalf("remove %s: %v", key, err)
	}
}

func prune(t testing.TB, d *Dataplane, plans ...*plan.Service) {
	t.Helper()
	keep := map[world.Key]bool{}
	for _, p := range plans {
		keep[p.Key] = true
	}
	if err := d.Prune(t.Context(), func(k world.Key) bool { return keep[k] }); err != nil {
		t.Fatal(err)
	}
}

// stripped returns a dump without the parts that differ when a row is created again.
func stripped(dump string) string {
	uuid := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	revision := regexp.MustCompile(`\["::[0-9a-f:]+"\]`)
	dump = revision.ReplaceAllString(dump, "REVISION")
	lines := strings.Split(uuid.ReplaceAllString(dump, "UUID"), "\n")
	for i := range lines {
		lines[i] = strings.Trim(strings.Join(strings.Fields(lines[i]), " "), "-")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
