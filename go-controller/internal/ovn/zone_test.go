// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// startZone starts the databases of the zone of one node, with the rows that OVN-Kubernetes creates with interconnect.
func startZone(t *testing.T, name string) (nb, sb *server) {
	t.Helper()
	nb, sb = serve(t, schema), serve(t, southboundSchema)
	sb.sbctl(t, "init")
	all := nodes()
	i := slices.IndexFunc(all, func(n testNode) bool { return n.name == name })
	nb.nbctl(t, "init")
	nb.nbctl(t, slices.Concat([]string{"lr-add", "ovn_cluster_router", "--", "ls-add", "join",
		"--", "lrp-add", "ovn_cluster_router", "rtoj-ovn_cluster_router", "0a:58:64:40:00:01", "100.64.0.1/16", "fd98::1/64",
		"--", "lsp-add", "join", "jtor-ovn_cluster_router", "--", "lsp-set-type", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-addresses", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-options", "jtor-ovn_cluster_router", "router-port=rtoj-ovn_cluster_router",
		"--", "lrp-add", "ovn_cluster_router", "rtots-" + name, "0a:58:64:58:00:02",
		fmt.Sprintf("100.88.0.%d/16", i+2), fmt.Sprintf("fd97::%d/64", i+2),
		"--", "lrp-add", "ovn_cluster_router", "rtos-" + name, "0a:58:0a:f4:00:01"}, all[i].subnets,
		[]string{"--", "lr-add", "GR_" + name, "--", "lrp-add", "GR_" + name, "rtoj-GR_" + name, "0a:58:64:40:00:02"},
		all[i].join)...)
	return nb, sb
}

// zoneTopology returns topology(2) as the agent of a node has it. Only n1 and n2 are gateways.
func zoneTopology(node, chassis string) *plan.Topology {
	f := topology(2)
	f.Zone = &plan.Zone{Node: node, Chassis: chassis}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		n.Transit = prefixes(fmt.Sprintf("100.88.0.%d/16", i+2), fmt.Sprintf("fd97::%d/64", i+2))
		for _, subnet := range prefixes(nodes()[i].subnets...) {
			n.PodSubnets = append(n.PodSubnets, subnet.Masked())
		}
	}
	for i := range f.Domains[0].Shards {
		s := &f.Domains[0].Shards[i]
		s.Ordinal = 10 + i
		s.Gateways = []plan.Gateway{{Node: "n2", Chassis: "c2"}, {Node: "n1", Chassis: "c1"}}
	}
	return f
}

// Both routers of a shard have the same tunnel keys in all zones, and so does the port that gateways claim: a packet
// that a zone redirects to a gateway continues there in the same router.
func TestTunnelKeysAreEqualInAllZones(t *testing.T) {
	t.Parallel()
	keys := func(node, chassis string) string {
		nb, sb := startZone(t, node)
		translate(t, nb, sb)
		d, _ := dial(t, nb, sb)
		configure(t, d, zoneTopology(node, chassis))
		apply(t, d, service(1, 2, "10.244.0.9", "10.244.1.9", "10.244.2.9", "fd00:10:244:1::9"))
		nb.sync(t)
		var out strings.Builder
		for i := range 2 {
			router := fmt.Sprintf("slbreturn-lan-%d", i)
			id := strings.TrimSpace(sb.sbctl(t, "--bare", "--columns=_uuid", "find", "Datapath_Binding",
				"external_ids:name="+router))
			fmt.Fprintln(&out, router, sb.sbctl(t, "--bare", "--columns=tunnel_key", "list", "Datapath_Binding", id))
			for _, port := range []string{router + "-join", router + "-out", "cr-" + router + "-out"} {
				fmt.Fprintln(&out, port, sb.sbctl(t, "--bare", "--columns=tunnel_key", "find", "Port_Binding",
					"logical_port="+port))
			}
		}
		return out.String()
	}
	want := `slbreturn-lan-0 16711658
slbreturn-lan-0-join 32767
slbreturn-lan-0-out 1
cr-slbreturn-lan-0-out 2
slbreturn-lan-1 16711656
slbreturn-lan-1-join 32767
slbreturn-lan-1-out 1
cr-slbreturn-lan-1-out 2
`
	for node, chassis := range map[string]string{"n1": "c1", "n3": "c3"} {
		if diff := cmp.Diff(want, keys(node, chassis)); diff != "" {
			t.Errorf("zone %s: -want +got:\n%s", node, diff)
		}
	}
}

// Only the zones of gateways have a shard's own router and its load balancers. A node that becomes a gateway, and stops
// being one, has the rows of its role. A restart writes nothing, and nothing of ours stays.
func TestZonesHaveTheRowsOfTheirRole(t *testing.T) {
	t.Parallel()
	nb, sb := startZone(t, "n3")
	bare := nb.dump(t)
	plans := []*plan.Service{service(1, 2, "10.244.0.9", "10.244.1.9", "fd00:10:244:2::9"), service(2, 2, "10.244.1.9")}
	write := func(f *plan.Topology) *Dataplane {
		d, _ := dial(t, nb, sb)
		configure(t, d, f)
		apply(t, d, plans...)
		prune(t, d, plans...)
		return d
	}
	routers := func() string { return nb.nbctl(t, "--bare", "--columns=name", "find", "Logical_Router", "name!=GR_n3") }
	worker := zoneTopology("n3", "c3")
	d := write(worker)
	asWorker := stripped(nb.dump(t))
	if got := routers(); strings.Contains(got, "slb-lan") || !strings.Contains(got, "slbreturn-lan-0") ||
		!strings.Contains(got, "slbnode-n3") || strings.Contains(got, "slbnode-n1") {
		t.Errorf("routers of a worker's zone: %s", got)
	}
	if got := nb.nbctl(t, "--bare", "--columns=name", "find", "Load_Balancer", "name!=slbnode-n3-tcp",
		"name!=slbnode-n3-udp"); got != "" {
		t.Errorf("load balancers in a worker's zone: %s", got)
	}
	written := nb.transactions(t)
	write(worker)
	if n := nb.transactions(t) - written; n != 0 {
		t.Errorf("a process after it: %d transactions, want none", n)
	}
	gateway := zoneTopology("n3", "c3")
	for i := range gateway.Domains[0].Shards {
		s := &gateway.Domains[0].Shards[i]
		s.Gateways = append(s.Gateways, plan.Gateway{Node: "n3", Chassis: "c3"})
	}
	configure(t, d, gateway)
	apply(t, d, plans...)
	if got := routers(); !strings.Contains(got, "slb-lan-0") || !strings.Contains(got, "slbreturn-lan-0") {
		t.Errorf("routers of a gateway's zone: %s", got)
	}
	if got := nb.nbctl(t, "lr-lb-list", "slb-lan-1"); !strings.Contains(got, "10.50.1.1:80") {
		t.Errorf("load balancers of a gateway's zone: %s", got)
	}
	configure(t, d, worker)
	apply(t, d, plans...)
	prune(t, d, plans...)
	if diff := cmp.Diff(asWorker, stripped(nb.dump(t))); diff != "" {
		t.Errorf("the zone of a worker, before and after it was a gateway:\n%s", diff)
	}
	empty := zoneTopology("n3", "c3")
	empty.Domains[0].Shards = nil
	for name, f := range map[string]*plan.Topology{"no shards": empty,
		"the Node has been deleted": {Zone: &plan.Zone{Node: "n3"}}} {
		configure(t, d, worker)
		apply(t, d, plans...)
		configure(t, d, f)
		remove(t, d, plans...)
		if diff := cmp.Diff(bare, nb.dump(t)); diff != "" {
			t.Errorf("%s: the database before and after us:\n%s", name, diff)
		}
	}
}

// ovn-northd assigns the keys of the ports that gateways claim. It got them wrong once in forty starts.
func TestRoutersWithOtherTunnelKeysAreRecreated(t *testing.T) {
	t.Parallel()
	nb, sb := startZone(t, "n3")
	translate(t, nb, sb)
	d, events := dial(t, nb, sb)
	f := zoneTopology("n3", "c3")
	configure(t, d, f)
	nb.sync(t)
	const port = "cr-slbreturn-lan-0-out"
	router := func() string {
		return strings.TrimSpace(nb.nbctl(t, "--bare", "--columns=_uuid", "find", "Logical_Router", "name=slbreturn-lan-0"))
	}
	before := router()
	sb.sbctl(t, "set", "Port_Binding", port, "tunnel_key=77")
	for seen := false; !seen; { // the router is missing, so everything is to be applied again
		seen = await.Receive(t, "the router is deleted", events) == Rows && router() != before
	}
	configure(t, d, f)
	nb.sync(t)
	await.True(t, "the key of "+port, func() bool {
		return strings.TrimSpace(sb.sbctl(t, "--bare", "--columns=tunnel_key", "find", "Port_Binding",
			"logical_port="+port)) == "2" && len(d.Miskeyed()) == 0
	})
	if after := router(); after == before || after == "" {
		t.Errorf("router %q, was %q", after, before)
	}
}
