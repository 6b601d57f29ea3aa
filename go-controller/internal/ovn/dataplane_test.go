// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// Rows are created, applied again by the same and by a new process, and removed. No row of other owners changes, on a
// database of real OVN-Kubernetes with a newer schema than ours.
func TestLifeCycleLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, capture)
	before := s.dump(t)
	one, two := service(1, 2, "10.244.1.10", "10.244.2.10", "fd00:10:244:1::10"), onHost(service(2, 2, "10.244.1.10"))
	all := func(d *Dataplane) {
		configure(t, d, topology(2))
		apply(t, d, one, two)
		prune(t, d, one, two)
	}
	d, _ := dial(t, s)
	all(d)
	written := s.transactions(t)
	all(d)
	if n := s.transactions(t); n != written {
		t.Errorf("applied again: %d transactions, want none", n-written)
	}
	again, _ := dial(t, s)
	all(again)
	if n := s.transactions(t); n != written {
		t.Errorf("a new process: %d transactions, want none", n-written)
	}
	configure(t, d, topology(0))
	remove(t, d, one, two)
	if diff := cmp.Diff(before, s.dump(t)); diff != "" {
		t.Errorf("the database before and after:\n%s", diff)
	}
}

// If the lease is lost between two transactions of one Apply, the second one is not sent.
func TestNoTransactionAfterTheTerm(t *testing.T) {
	t.Parallel()
	s, _ := ready(t, 2)
	var term atomic.Bool // true once the term is over
	d, _ := connect(t, Options{
		NB:         Endpoint{Address: "unix:" + s.socket},
		Transacted: func(error) { term.Store(true) },
		Fence: func() error {
			if term.Load() {
				return errors.New("over")
			}
			return nil
		},
	})
	var changes []dataplane.Change
	for i := range 2 * maxChanges {
		p := service(i+1, 2, "10.244.1.10")
		changes = append(changes, dataplane.Change{Key: p.Key, Want: p})
	}
	configure(t, d, topology(2)) // writes nothing
	before := s.transactions(t)
	failed := d.Apply(t.Context(), changes)
	if n := s.transactions(t) - before; n != 1 {
		t.Errorf("%d transactions, want 1", n)
	}
	if n := len(failed); n == 0 || n == len(changes) {
		t.Errorf("%d of %d failed, want those after the first transaction", n, len(changes))
	}
}

// Announced addresses are read from the load balancers of a Service.
func TestAnnouncedAddressesAreThoseOfLoadBalancers(t *testing.T) {
	t.Parallel()
	_, d := ready(t, 2)
	one, two := service(1, 2, "10.244.1.10"), service(2, 2, "10.244.1.10")
	apply(t, d, one, two)
	want := map[netip.Addr]bool{}
	for _, v := range one.VIPs {
		want[v.Addr] = true
	}
	if got := d.Announced([]world.Key{one.Key}); !maps.Equal(got, want) {
		t.Errorf("announced %v, want %v", got, want)
	}
}

// The order of gateways changes in one transaction that updates only the priorities of existing rows.
func TestGatewayOrderIsOneTransaction(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	order := func() (out []string) {
		for line := range strings.Lines(s.nbctl(t, "--bare", "--format=csv", "--no-heading",
			"--columns=_uuid,chassis_name,priority", "list", "HA_Chassis")) {
			out = append(out, strings.TrimSpace(line))
		}
		slices.Sort(out)
		return out
	}
	before, written := order(), s.transactions(t)
	if got := shardStates(d)[world.ShardID{Domain: "lan"}].Order; !slices.Equal(got, []string{"c1", "c2", "c3"}) {
		t.Errorf("order %v", got)
	}
	f := topology(1)
	slices.Reverse(f.Domains[0].Shards[0].Gateways)
	configure(t, d, f)
	if n := s.transactions(t) - written; n != 1 {
		t.Errorf("%d transactions, want 1", n)
	}
	if got := shardStates(d)[world.ShardID{Domain: "lan"}].Order; !slices.Equal(got, []string{"c3", "c2", "c1"}) {
		t.Errorf("order %v", got)
	}
	for i, line := range order() {
		if uuid := strings.Split(line, ",")[0]; !strings.HasPrefix(before[i], uuid) {
			t.Errorf("row %s is new", line)
		}
	}
}

// A new backend takes the slot of the backend that it replaces.
func TestBackendsKeepTheirSlots(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	vip := func() string {
		return s.nbctl(t, "--bare", "get", "Load_Balancer", "slb-default/s0-10.50.1.0-tcp", `vips:"10.50.1.0:80"`)
	}
	apply(t, d, service(0, 1, "10.244.1.1", "10.244.1.2", "10.244.1.3"))
	apply(t, d, service(0, 1, "10.244.1.1", "10.244.1.3", "10.244.1.9"))
	if got, want := vip(), `"240.1.1.0:8080,240.1.9.0:8080,240.1.3.0:8080"`; got != want {
		t.Errorf("replaced: %s, want %s", got, want)
	}
	apply(t, d, service(0, 1, "10.244.1.3", "10.244.1.9"))
	if got, want := vip(), `"240.1.3.0:8080,240.1.9.0:8080,240.1.3.0:8080"`; got != want {
		t.Errorf("removed: %s, want %s", got, want)
	}
}

// Prune removes our rows for which keep returns false, and duplicates, but nothing else.
func TestPruneRemovesOnlyOurs(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	one, two := service(1, 2, "10.244.1.10"), service(2, 2, "10.244.2.10")
	apply(t, d, one, two)
	s.nbctl(t, "lb-add", "Service_default/other_TCP", "10.96.0.9:80", "10.244.1.1:80")
	s.nbctl(t, "set", "load_balancer", "Service_default/other_TCP", "external_ids:k8s.ovn.org/kind=Service",
		"external_ids:k8s.ovn.org/owner=default/other")
	s.nbctl(t, "lr-policy-add", "ovn_cluster_router", "501", "ip4.src == 10.244.1.1", "reroute", "100.64.0.2")
	want := stripped(s.dump(t))
	s.double(t, "slb-default/s1-10.50.1.1-tcp")
	old, _ := dial(t, s)
	configure(t, old, topology(2))
	apply(t, old, service(7, 2, "10.244.7.10"))
	await.True(t, "the first process sees what the second wrote", func() bool {
		_, v, err := d.nb.current()
		return err == nil && len(v.withID("Load_Balancer", "slb.k8s.ovn.org/service", "default/s7")) == 4
	})
	prune(t, d, one, two)
	if diff := cmp.Diff(want, stripped(s.dump(t))); diff != "" {
		t.Errorf("before and after:\n%s", diff)
	}
}

// A router port of another owner is not ours, even if it has our keys.
func TestPortWithOurKeysOfAnotherOwnerStays(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	s.nbctl(t, "lrp-add", "ovn_cluster_router", "other", "0a:00:00:00:00:01", "192.0.2.1/24")
	s.nbctl(t, "set", "logical_router_port", "other", "external_ids:slb.k8s.ovn.org/node=n3",
		"external_ids:slb.k8s.ovn.org/holder=ovn_cluster_router")
	await.True(t, "the port is replicated", func() bool {
		_, v, err := d.nb.current()
		return err == nil && slices.ContainsFunc(v.all("Logical_Router_Port"), func(r record) bool {
			return r.string("name") == "other"
		})
	})
	prune(t, d)
	apply(t, d, service(1, 1, "10.244.1.1"))
	remove(t, d, service(1, 1))
	if got := s.nbctl(t, "get", "logical_router_port", "other", "networks"); got != `["192.0.2.1/24"]` {
		t.Errorf("the port has networks %s, want 192.0.2.1/24", got)
	}
}

// A process that has received only some Services removes no address from a return path.
func TestReturnPathsSurviveARestart(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	one, two, three := service(1, 1, "10.244.1.10"), service(2, 1, "10.244.2.10"), service(3, 1, "10.244.1.12")
	three.Listeners = three.Listeners[:1]
	three.Listeners[0].Backends[0].Addr = netip.MustParseAddrPort("10.244.1.12:9999")
	apply(t, d, one, two, three)
	again, _ := dial(t, s)
	configure(t, again, topology(1))
	moved := service(1, 1, "10.244.1.11")
	apply(t, again, moved)
	prune(t, again, moved, two, three)
	back := func() string {
		return s.nbctl(t, "lb-list") + "\n" + s.nbctl(t, "lr-policy-list", "ovn_cluster_router")
	}
	for _, want := range []string{"10.244.2.10:8080\n", "10.244.1.11:8080\n", "10.244.1.12:9999\n",
		"tcp.src == {8080, 9999}"} {
		if !strings.Contains(back(), want) {
			t.Errorf("%q has no way back:\n%s", want, back())
		}
	}
	apply(t, again, two)
	remove(t, again, three)
	prune(t, again, moved, two)
	for _, gone := range []string{"10.244.1.10:", "10.244.1.12:", "9999"} {
		if strings.Contains(back(), gone) {
			t.Errorf("%q still has a way back:\n%s", gone, back())
		}
	}
}

// A Service that can't be written fails with an error of its own.
func TestFailuresAreByService(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	good, lost, last := service(1, 1, "10.244.1.10"), service(2, 1, "10.244.2.10"), service(3, 1, "10.244.3.10")
	lost.VIPs[0].Shard.Index = 5
	failed := d.Apply(t.Context(), []dataplane.Change{{Key: good.Key, Want: good}, {Key: lost.Key, Want: lost},
		{Key: last.Key, Want: last}})
	if err := failed[lost.Key]; err == nil || !strings.Contains(err.Error(),
		"address 10.50.1.2: shard lan/5 has no router") {
		t.Errorf("no shard: %v", err)
	}
	if n := strings.Count(s.nbctl(t, "lb-list"), "slb-default/s"); n != 8 || len(failed) != 1 {
		t.Errorf("%d load balancers of the good ones, want 8; failed: %v", n, failed)
	}
}

// A change that the server refuses fails alone. The other changes of the transaction are written.
func TestRejectionsArePerUnit(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	insert := func(name, protocol string) opsFunc {
		return func(b *batch) error {
			b.ops = append(b.ops, ovsdb.Operation{
				Op: ovsdb.OperationInsert, Table: "Load_Balancer", Row: ovsdb.Row{"name": name, "protocol": protocol},
			})
			return nil
		}
	}
	opsFuncs := make([]opsFunc, 50)
	for i := range opsFuncs {
		opsFuncs[i] = insert(fmt.Sprint("lb", i), "tcp")
	}
	opsFuncs[17] = insert("bad", "ipx")
	written := s.transactions(t)
	for i, err := range d.commit(t.Context(), opsFuncs) {
		if (err != nil) != (i == 17) {
			t.Errorf("function %d: %v", i, err)
		}
	}
	if names := s.names(t, "lb"); len(names) != 49 {
		t.Errorf("%d rows, want 49", len(names))
	}
	if n := s.transactions(t) - written; n > 8 {
		t.Errorf("%d transactions, want few", n)
	}
}

// Two processes that both believe they are the leader write no row twice.
func TestRacingProcessesWriteOnce(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	e, _ := dial(t, s)
	configure(t, e, topology(2))
	plans := crowd(40, 2, 2)
	var racers sync.WaitGroup
	for _, d := range []*Dataplane{d, e} {
		racers.Go(func() {
			for _, p := range plans {
				for len(d.Apply(t.Context(), []dataplane.Change{{Key: p.Key, Want: p}})) > 0 {
					runtime.Gosched() // refused, because the other process was faster
				}
			}
		})
	}
	racers.Wait()
	names := s.names(t, "slb-")
	slices.Sort(names)
	if distinct := slices.Compact(slices.Clone(names)); len(names) != len(distinct) || len(names) != 160 {
		t.Errorf("%d load balancers, %d distinct, want 160", len(names), len(distinct))
	}
}

// The server crashes during a write and restarts with its database.
func TestServerCrash(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	d, events := dial(t, s)
	configure(t, d, topology(2))
	plans := crowd(600, 2, 2)
	changes := make([]dataplane.Change, 0, len(plans))
	for _, p := range plans {
		changes = append(changes, dataplane.Change{Key: p.Key, Want: p})
	}
	written := s.transactions(t)
	var failed map[world.Key]error
	done := make(chan struct{})
	go func() {
		failed = d.Apply(t.Context(), changes)
		close(done)
	}()
	await.True(t, "a few transactions", func() bool { return s.transactions(t) > written+3 })
	s.kill()
	<-done
	if len(failed) == 0 || len(failed) == len(plans) {
		t.Logf("%d of %d failed", len(failed), len(plans))
	}
	s.start(t)
	waitFor(t, events, Rows)
	configure(t, d, topology(2))
	apply(t, d, plans...)
	prune(t, d, plans...)
	if n := len(s.names(t, "slb-")); n != 4*len(plans) {
		t.Errorf("%d load balancers, want %d", n, 4*len(plans))
	}
}

// names returns the names of the load balancers that start with prefix.
func (s *server) names(t *testing.T, prefix string) []string {
	t.Helper()
	return slices.DeleteFunc(strings.Fields(s.nbctl(t, "--bare", "--columns=name", "list", "Load_Balancer")),
		func(name string) bool {
			return !strings.HasPrefix(name, prefix)
		})
}

// ready returns a new database with the join network of OVN-Kubernetes and configured shards.
func ready(t *testing.T, shards int) (*server, *Dataplane) {
	t.Helper()
	s := serve(t, schema)
	s.clusterRows(t)
	d, _ := dial(t, s)
	configure(t, d, topology(shards))
	return s, d
}

// double inserts a duplicate of a load balancer, as a crash or a bug could have done.
func (s *server) double(t *testing.T, name string) {
	t.Helper()
	ids := s.nbctl(t, "--bare", "get", "load_balancer", name, "external_ids")
	s.nbctl(t, "create", "load_balancer", "name="+name, "protocol=tcp", "external_ids="+ids)
}

func waitFor(t *testing.T, events <-chan EventKind, want EventKind) {
	t.Helper()
	for await.Receive(t, fmt.Sprintf("event %d", want), events) != want {
	}
}

// drain discards pending events.
func drain(events <-chan EventKind) {
	for len(events) > 0 {
		<-events
	}
}
