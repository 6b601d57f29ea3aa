// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// drained returns a plan whose backends are all draining.
func drained(p *plan.Service) *plan.Service {
	for i := range p.Listeners {
		p.Listeners[i].Draining, p.Listeners[i].Backends = p.Listeners[i].Backends, nil
	}
	return p
}

// OVN translates the replies of draining backends as before, and only refuses new connections. A restart changes
// nothing, and no row is left once the backends are gone.
func TestDrainingBackendsKeepTheirFlows(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	log := translate(t, nb, sb)
	d, _ := dial(t, nb, sb)
	configure(t, d, topology(1))
	backends := []string{"10.244.1.1", "10.244.1.2", "fd00:10:244:1::1"}
	apply(t, d, service(1, 1, backends...), onHost(service(2, 1)))
	flows := func() string {
		nb.sync(t)
		return withPorts(sb.sbctl(t, "lflow-list"))
	}
	kept := []string{
		`lr_out_undnat .*ip4.src == 240.1.1.0 && tcp.src == 8080.* outport == "slb-lan-0-ext"`,
		`lr_out_undnat .*ip4.src == 240.1.2.0 && udp.src == 8053.* outport == "slb-lan-0-ext"`,
		`lr_out_undnat .*ip6.src == fd3e:5b1c:1::1:0 && tcp.src == 8080.* outport == "slb-lan-0-ext"`,
		`lr_out_undnat .*ip4.src == 240.2.0.0 && tcp.src == 9080.* outport == "slb-lan-0-ext"`,
		`lr_in_defrag .*ip4.dst == 10.50.1.1\), action=\(ct_dnat;\)`,
		`lr_in_dnat .*ip4.dst == 240.1.2.0 && tcp && tcp.dst == 8080\), .*backends=10.244.1.2:8080;`,
		`lr_in_policy .*inport == "rtos-n3" && \(tcp.src == \{8080\} \|\| udp.src == \{8053\}\)`,
		`lr_in_policy .*inport == "rtos-n1" && ip4.src == 172.18.0.11 && ip4.dst == 169.254.169.3 && \(tcp.src == \{9080\}`,
	}
	expect := func(flows string, want bool, all ...string) {
		t.Helper()
		for _, flow := range all {
			if regexp.MustCompile(flow).MatchString(flows) != want {
				t.Errorf("flow %s: want %t", flow, want)
			}
		}
	}
	expect(flows(), true, kept...)

	one, two := drained(service(1, 1, backends...)), drained(onHost(service(2, 1)))
	apply(t, d, one, two)
	now := flows()
	expect(now, true, kept...)
	expect(now, true,
		`lr_in_dnat .*ct.new .*ip4.dst == 10.50.1.1 && tcp && tcp.dst == 80\), action=\(reg0 = 0; reject`,
		`lr_in_dnat .*ct.new .*ip6.dst == fd00:50::1:2 && udp && udp.dst == 53\), action=\(reg0 = 0; reject`)
	expect(now, false, `ip[46].dst == (10.50|fd00:50).*ct_lb_mark`, `arp.tpa == .*240\.`)

	before := nb.transactions(t)
	again, _ := dial(t, nb, sb)
	configure(t, again, topology(1))
	apply(t, again, one, two)
	prune(t, again, one, two)
	if n := nb.transactions(t) - before; n != 0 {
		t.Errorf("%d transactions of a restart", n)
	}
	northdIsContent(t, log)

	apply(t, again, service(1, 1), service(2, 1))
	for line := range strings.Lines(nb.nbctl(t, "--no-headings", "--format=csv", "--columns=name,vips", "list",
		"Load_Balancer")) {
		if strings.Contains(line, "draining") && !strings.HasSuffix(strings.TrimSpace(line), ",{}") {
			t.Errorf("a draining backend is left: %s", line)
		}
	}
	if now := flows(); strings.Contains(now, "240.1.1.0") {
		t.Error("flows of the backends are left")
	}
}
