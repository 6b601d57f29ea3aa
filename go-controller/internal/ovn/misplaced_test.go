// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The flows that northd creates from our rows are in the right routers. A flow of another load balancer in a shard's
// router is detected, and so is a missing flow of ours.
func TestMisplacedFlowsAreDetected(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	translate(t, nb, sb)
	d, _ := dial(t, nb, sb)
	configure(t, d, topology(1))
	apply(t, d, service(1, 1, "10.244.1.1", "10.244.1.2", "fd00:10:244:1::1"))
	nb.sync(t)
	run(t, "ovn-appctl", "-t", filepath.Join(filepath.Dir(nb.socket), "northd.ctl"), "pause")

	misplaced := func() []netip.Addr {
		t.Helper()
		_, v, err := d.nb.current()
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := d.sb.current()
		if err != nil {
			t.Fatal(err)
		}
		routers := vipsByRouter(v)
		routers["slb-lan-1"] = map[netip.Addr]bool{} // northd has not written this one yet
		found, err := c.misplaced(t.Context(), routers)
		if err != nil {
			t.Fatal(err)
		}
		return slices.SortedFunc(maps.Keys(found), netip.Addr.Compare)
	}
	if got := misplaced(); len(got) > 0 {
		t.Errorf("%v are reported as misplaced", got)
	}
	v4, v6 := netip.MustParseAddr("10.50.1.1"), netip.MustParseAddr("fd00:50::1:1")
	row := func(args ...string) string {
		return strings.TrimSpace(sb.sbctl(t, append([]string{"--bare", "--columns=_uuid"}, args...)...))
	}
	shard := row("find", "Datapath_Binding", "external_ids:name=slb-lan-0")
	const foreign = `match="ct.new && ip4.dst == 10.50.1.1 && tcp.dst == 80"`
	sb.sbctl(t, "--", "--id=@others", "create", "Logical_DP_Group", "datapaths="+row("find", "Datapath_Binding",
		"external_ids:name=GR_n1"),
		"--", "create", "Logical_Flow", "logical_dp_group=@others", "pipeline=ingress", "table_id=7", "priority=120", foreign,
		`actions="drop;"`, "external_ids:stage-name=lr_in_dnat")
	flow := row("find", "Logical_Flow", foreign)
	if got := misplaced(); len(got) > 0 {
		t.Errorf("%v are reported as misplaced because of a flow of other routers", got)
	}
	sb.sbctl(t, "add", "Logical_DP_Group", strings.TrimSpace(sb.sbctl(t, "get", "Logical_Flow", flow, "logical_dp_group")),
		"datapaths", shard)
	if got := misplaced(); !slices.Equal(got, []netip.Addr{v4}) {
		t.Errorf("%v misplaced, want %v", got, v4)
	}
	sb.sbctl(t, "destroy", "Logical_Flow", flow)
	sb.sbctl(t, "destroy", "Logical_Flow", row("find", "Logical_Flow", `match="ip && ip6.dst == fd00:50::1:1"`))
	if got := misplaced(); !slices.Equal(got, []netip.Addr{v6}) {
		t.Errorf("%v misplaced, want %v", got, v6)
	}
	for _, flow := range strings.Fields(row("find", "Logical_Flow", "logical_datapath="+shard,
		"external_ids:stage-name=lr_in_dnat")) {
		sb.sbctl(t, "destroy", "Logical_Flow", flow)
	}
	if got := misplaced(); len(got) > 0 {
		t.Errorf("%v are reported as misplaced although northd has not written them yet", got)
	}
}
