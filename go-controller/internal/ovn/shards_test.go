// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// A shard that loses its anchor and gets it back carries the same Services as before.
func TestReturningShardIsApplied(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	apply(t, d, service(1, 1, "10.244.1.10"))
	want := stripped(s.dump(t))
	configure(t, d, topology(0))
	configure(t, d, topology(1))
	apply(t, d, service(1, 1, "10.244.1.10"))
	if diff := cmp.Diff(want, stripped(s.dump(t))); diff != "" {
		t.Errorf("before and after:\n%s", diff)
	}
}

// An address that moves to another shard takes its load balancers and return path along.
func TestAddressMovesBetweenShards(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	prune(t, d)
	p := service(1, 2, "10.244.1.10")
	apply(t, d, p)
	moved := service(1, 2, "10.244.1.10")
	for i := range moved.VIPs {
		moved.VIPs[i].Shard.Index = 0
	}
	apply(t, d, moved)
	if n := len(strings.Fields(s.nbctl(t, "lr-lb-list", "slb-lan-1"))); n != 0 {
		t.Errorf("the old router has load balancers still")
	}
	if out := s.nbctl(t, "lr-lb-list", "slb-lan-0"); strings.Count(out, "slb-default/s1") != 4 {
		t.Errorf("the new router has\n%s", out)
	}
	if out := s.nbctl(t, "--bare", "--columns=vips", "find", "Load_Balancer",
		"name=slbnode-n3-tcp"); !strings.Contains(out, "240.1.10.0:8080") || strings.Contains(out, "240.1.10.1:") {
		t.Errorf("aliases:\n%s", out)
	}
}

// The ACLs of a Service with source ranges are added and removed with it, and are restored before routers adopt the
// load balancers again.
func TestSourceRangesFailClosed(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	p := service(1, 1, "10.244.1.10")
	p.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.0/24"), world.IPv6: nil}
	apply(t, d, p)
	// One of the ACLs belongs to the domain.
	acls := func() int { return strings.Count(s.nbctl(t, "acl-list", "slb-lan"), "from-lport") - 1 }
	// There are two families and two protocols, and fragments; IPv6 admits no client.
	if n := acls(); n != 12 {
		t.Errorf("%d ACLs, want 12", n)
	}
	written := s.transactions(t)
	again, _ := dial(t, s)
	configure(t, again, topology(1))
	apply(t, again, p)
	prune(t, again, p)
	if n := s.transactions(t) - written; n != 0 {
		t.Errorf("a new process: %d transactions, want none", n)
	}
	configure(t, d, topology(0))
	configure(t, d, topology(1))
	if n := acls(); n != 12 {
		t.Errorf("the shard is back with %d ACLs, want 12", n)
	}
	if out := s.nbctl(t, "lr-lb-list", "slb-lan-0"); strings.Count(out, "slb-default/s1") != 4 {
		t.Errorf("the shard is back with\n%s", out)
	}
	open := service(1, 1, "10.244.1.10")
	apply(t, d, open)
	if n := acls(); n != 0 {
		t.Errorf("no ranges: %d ACLs", n)
	}
	apply(t, d, p)
	remove(t, d, p)
	if n := acls(); n != 0 {
		t.Errorf("no Service: %d ACLs", n)
	}
}

// The join network is connected only after OVN-Kubernetes has created it.
func TestWaitsForOVNKubernetes(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	d, events := dial(t, s)
	err := d.Configure(t.Context(), topology(1))
	if err == nil || !strings.Contains(err.Error(), "rtoj-ovn_cluster_router has no address") {
		t.Fatalf("Configure: %v", err)
	}
	if failed := d.Apply(t.Context(), []dataplane.Change{{Key: world.Key{Name: "x"},
		Want: service(1, 1)}}); len(failed) != 1 {
		t.Errorf("Apply: %v", failed)
	}
	s.clusterRows(t)
	waitFor(t, events, Rows)
	configure(t, d, topology(1))
}

// Join addresses never collide with addresses of others, and are stable.
func TestJoinAddressesAvoidUsedOnes(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	s.nbctl(t, "lr-add", "GR_last", "--", "lrp-add", "GR_last", "rtoj-GR_last", "0a:58:64:40:ff:fe", "100.64.255.254/16")
	d, _ := dial(t, s)
	configure(t, d, topology(2))
	networks := func(shard string) string {
		return s.nbctl(t, "--bare", "get", "Logical_Router_Port", shard+"-join", "networks")
	}
	first := networks("slb-lan-1")
	if want := `["100.64.255.252/16", "fd98::ffff:ffff:ffff:fffc/64"]`; first != want {
		t.Errorf("second shard: %s, want %s", first, want)
	}
	f := topology(2)
	f.Domains[0].Shards = f.Domains[0].Shards[1:]
	configure(t, d, f)
	if got := networks("slb-lan-1"); got != first {
		t.Errorf("alone: %s, was %s", got, first)
	}
}

// Without the southbound database, no chassis counts as having released a shard, also in the moment in which the client
// has noticed that the connection is lost and its session has not ended yet.
func TestClaimsAreUnknownWithoutTheSouthboundDatabase(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	d, _ := dial(t, nb, sb)
	configure(t, d, topology(1))
	await.True(t, "the shard has a state", func() bool { return len(shardStates(d)) == 1 })
	if _, claimsRead := d.ShardStates(); !claimsRead {
		t.Error("the claims are unknown although both databases are connected")
	}
	lost := d.sb.conn.Load()
	sb.kill()
	await.True(t, "the southbound database is lost", func() bool { return d.UnreadSB() != nil })
	for what, c := range map[string]*connection{"after the session": nil, "at its end": lost} {
		d.sb.conn.Store(c)
		states, claimsRead := d.ShardStates()
		if claimsRead || len(states[world.ShardID{Domain: "lan"}].Order) != 3 {
			t.Errorf("%s: claims are read: %t, states %v", what, claimsRead, states)
		}
	}
}
