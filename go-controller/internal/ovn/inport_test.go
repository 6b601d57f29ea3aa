// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// sharedTopology returns topology(2) with the domain on the bridge of OVN-Kubernetes' own gateway, in shared mode. The
// gateways are n1 and n2.
func sharedTopology() *plan.Topology {
	f := topology(2)
	f.Domains[0].VLAN = 0
	for i := range f.Domains[0].Shards {
		f.Domains[0].Shards[i].Gateways = []plan.Gateway{
			{Node: "n1", Chassis: "c1", SharedBridge: true}, {Node: "n2", Chassis: "c2", SharedBridge: true},
		}
	}
	return f
}

// externalSwitches creates the rows of OVN-Kubernetes between a node's gateway router and its bridge.
func (s *server) externalSwitches(t *testing.T, nodes ...string) {
	t.Helper()
	for _, n := range nodes {
		s.nbctl(t, "ls-add", "ext_"+n, "--", "lrp-add", "GR_"+n, "rtoe-GR_"+n, "0a:58:ac:12:00:0b", "172.18.0.11/24",
			"--", "lsp-add", "ext_"+n, "etor-GR_"+n, "--", "lsp-set-type", "etor-GR_"+n, "router",
			"--", "lsp-set-options", "etor-GR_"+n, "router-port=rtoe-GR_"+n)
	}
}

// The external switches of nodes are not in the replica. In-ports are attached to them nevertheless, a restart writes
// nothing, a port that another client deletes is written again, and nothing of ours stays.
func TestInPortsAreOnTheExternalSwitchesOfGateways(t *testing.T) {
	nb := serve(t, schema)
	nb.clusterRows(t)
	nb.externalSwitches(t, "n1", "n2", "n3")
	bare := stripped(nb.dump(t))
	d, events := dial(t, nb)
	configure(t, d, sharedTopology())
	ports := func(node string) string {
		return strings.Join(strings.Fields(nb.nbctl(t, "--bare", "--columns=name", "find", "Logical_Switch_Port",
			"name=in-slbin-lan/"+node+"-0")+" "+nb.nbctl(t, "lsp-list", "ext_"+node)), " ")
	}
	for _, n := range []string{"n1", "n2"} {
		if got := ports(n); !strings.Contains(got, "in-slbin-lan/"+n+"-0)") || !strings.Contains(got, "in-slbin-lan/"+n+"-1)") {
			t.Errorf("ports of ext_%s: %s", n, got)
		}
		if got := nb.nbctl(t, "acl-list", "ext_"+n); strings.Count(got, "is_chassis_resident") != 2 {
			t.Errorf("ACLs of ext_%s: %s", n, got)
		}
	}
	if got := nb.nbctl(t, "lsp-list", "ext_n3"); strings.Contains(got, "slbin") {
		t.Errorf("ports of ext_n3, which is no gateway: %s", got)
	}
	written := stripped(nb.dump(t))
	transactions := nb.transactions(t)
	again, _ := dial(t, nb)
	configure(t, again, sharedTopology())
	prune(t, again)
	if n := nb.transactions(t) - transactions; n != 0 {
		t.Errorf("a process after it: %d transactions, want none", n)
	}
	drain(events)
	nb.nbctl(t, "lsp-del", "in-slbin-lan/n2-1", "--", "acl-del", "ext_n1")
	waitFor(t, events, Rows)
	configure(t, d, sharedTopology())
	if diff := cmp.Diff(written, stripped(nb.dump(t))); diff != "" {
		t.Errorf("after the repair: %s", diff)
	}
	d.topology = nil
	configure(t, d, &plan.Topology{Cluster: sharedTopology().Cluster})
	prune(t, d)
	if diff := cmp.Diff(bare, stripped(nb.dump(t))); diff != "" {
		t.Errorf("after the last domain is gone: %s", diff)
	}
}

// A gateway whose external switch is missing has no in-ports, and the others don't wait for it.
func TestInPortsOfOtherGatewaysAreWrittenIfASwitchIsMissing(t *testing.T) {
	nb := serve(t, schema)
	nb.clusterRows(t)
	nb.externalSwitches(t, "n1", "n2")
	nb.nbctl(t, "ls-del", "ext_n1")
	d, _ := dial(t, nb)
	err := d.Configure(t.Context(), sharedTopology())
	if err == nil || !strings.Contains(err.Error(), "Logical_Switch ext_n1 is not in the database") {
		t.Errorf("error %v, want one that names the switch", err)
	}
	if got := nb.nbctl(t, "lsp-list", "ext_n2"); !strings.Contains(got, "in-slbin-lan/n2-0)") {
		t.Errorf("ports of ext_n2: %s", got)
	}
	nb.nbctl(t, "ls-add", "ext_n1")
	configure(t, d, sharedTopology())
	if got := nb.nbctl(t, "lsp-list", "ext_n1"); !strings.Contains(got, "in-slbin-lan/n1-0)") {
		t.Errorf("ports of ext_n1 when it exists: %s", got)
	}
}
