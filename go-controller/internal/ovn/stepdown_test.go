// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// members returns the members of the HA chassis groups of shards in the order of their priorities, as "GROUP: CHASSIS
// PRIORITY, ..." lines.
func members(t *testing.T, nb *server) string {
	t.Helper()
	var lines []string
	for _, group := range []string{"slb-lan-0", "slb-lan-1"} {
		line := group + ":"
		for _, chassis := range []string{"c1", "c2", "c3"} {
			priority := strings.TrimSpace(nb.nbctl(t, "--bare", "--columns=priority", "find", "HA_Chassis",
				"chassis_name="+chassis, "external_ids:\"k8s.ovn.org/primary-id\"="+
					"\"ovnkube-slb:Shard:lan/"+group[len(group)-1:]+":chassis:"+chassis+"\""))
			if priority != "" {
				line += " " + chassis + " " + priority
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// bootTopology returns zoneTopology of node n2, which is the first gateway of shard lan/0 and the only one of lan/1, in
// a boot.
func bootTopology(boot string) *plan.Topology {
	f := zoneTopology("n2", "c2")
	f.Zone.Boot = boot
	f.Domains[0].Shards[1].Gateways = f.Domains[0].Shards[1].Gateways[:1]
	return f
}

// A gateway that was off has an old order of gateways in its database, and must not claim its shards by it. It steps
// down without Configure: the order is published through the API server. Shards of which it is the only gateway, and
// witnesses, are unaffected.
func TestGatewayStepsDownAfterBoot(t *testing.T) {
	t.Parallel()
	const (
		first = "slb-lan-0: c1 90 c2 100 c3 1\nslb-lan-1: c1 1 c2 100 c3 1"
		last  = "slb-lan-0: c1 90 c2 5 c3 1\nslb-lan-1: c1 1 c2 100 c3 1"
	)
	nb, sb := startZone(t, "n2")
	nb.nbctl(t, "set", "NB_Global", ".", "name=n2")
	agent := func(zone, boot string) *Dataplane {
		d, _ := connect(t, Options{NB: Endpoint{Address: "unix:" + nb.socket}, SB: Endpoint{Address: "unix:" + sb.socket},
			Zone: zone, Boot: boot})
		return d
	}
	expect := func(when, want string) {
		t.Helper()
		if diff := cmp.Diff(want, members(t, nb)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	unchanged := func(when string, d *Dataplane) {
		t.Helper()
		written := nb.transactions(t)
		if shards, err := d.stepDown(t.Context()); err != nil || len(shards) > 0 || nb.transactions(t) != written {
			t.Errorf("%s: shards %v, %v, %d transactions", when, shards, err, nb.transactions(t)-written)
		}
	}
	// An earlier version has not written the boot, and its last boot is unknown.
	configure(t, agent("n2", ""), bootTopology(""))
	expect("written", first)
	d := agent("n2", "boot-1")
	unchanged("rows without a boot", d)
	configure(t, d, bootTopology("boot-1"))
	unchanged("the same boot", agent("n2", "boot-1"))
	expect("the same boot", first)

	unchanged("an unknown boot", agent("n2", ""))
	unchanged("another node's zone", agent("n1", "boot-2"))
	if !d.OwnsZone() || agent("n1", "boot-1").OwnsZone() {
		t.Error("the zone is that of n2, and of no other node")
	}
	nb.nbctl(t, "set", "NB_Global", ".", "name=global")
	whole := agent("n2", "boot-2")
	if unchanged("the database of the whole cluster", whole); whole.OwnsZone() {
		t.Error("the database of the whole cluster is taken for that of the node")
	}
	expect("nothing but the own zone", first)

	nb.nbctl(t, "set", "NB_Global", ".", "name=n2")
	written := nb.transactions(t)
	d = agent("n2", "boot-2")
	await.True(t, "stepping down", func() bool { return members(t, nb) == last })
	if n := nb.transactions(t) - written; n != 1 {
		t.Errorf("stepped down in %d transactions, want 1", n)
	}
	unchanged("already last", d)
	unchanged("restarted before the order was read", agent("n2", "boot-2"))
	f := bootTopology("boot-2")
	gateways := f.Domains[0].Shards[0].Gateways
	gateways[0], gateways[1] = gateways[1], gateways[0]
	configure(t, d, f)
	const published = "slb-lan-0: c1 100 c2 90 c3 1\nslb-lan-1: c1 1 c2 100 c3 1"
	expect("the published order", published)
	unchanged("restarted after the order was read", agent("n2", "boot-2"))
	expect("the published order, restarted", published)
}

// The order may be published again before the gateway has stepped down.
func TestGatewayDoesNotStepDownFromPublishedOrder(t *testing.T) {
	t.Parallel()
	nb, sb := startZone(t, "n2")
	d, _ := connect(t, Options{NB: Endpoint{Address: "unix:" + nb.socket}, SB: Endpoint{Address: "unix:" + sb.socket},
		Zone: "n2", Boot: "boot-2"})
	configure(t, d, bootTopology("boot-1"))
	nb.nbctl(t, "set", "NB_Global", ".", "name=n2")
	configure(t, d, bootTopology("boot-2"))
	before := members(t, nb)
	if shards, err := d.stepDown(t.Context()); err != nil || len(shards) > 0 {
		t.Errorf("stepped down from %v, %v", shards, err)
	}
	if diff := cmp.Diff(before, members(t, nb)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
