// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// lagging describes the endpoints of a Service on nodes whose zones have not applied its newest plan for a while. They
// may have applied an earlier one, so connections need not fail. It returns an empty text if there are none. What is
// known of OVN's tunnels to a node explains more.
func (v *Builder) lagging(key world.Key) string {
	nodes := slices.DeleteFunc(slices.Clone(v.World.Lagging[key]), func(name string) bool {
		return v.nodes[name] == nil || v.nodes[name].Agent == nil || v.Layout.TunnelsDown[name].Why != ""
	})
	p := v.Plans[key]
	if len(nodes) == 0 || p == nil {
		return ""
	}
	every, lagging := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, l := range p.Listeners {
		for _, b := range l.Backends {
			every[b.Addr.Addr()] = true
			if slices.Contains(nodes, b.Node) {
				lagging[b.Addr.Addr()] = true
			}
		}
	}
	if len(lagging) == 0 {
		return ""
	}
	subject := ""
	if len(nodes) > 1 {
		subject = "node " + nodes[0] + ": "
	}
	verb := "has"
	if len(nodes) > 1 {
		verb = "have"
	}
	return fmt.Sprintf("connections to %d of %s may get no reply, because %s %s not applied the latest change: %s%s",
		len(lagging), world.Count(len(every), "endpoint"), named("node", nodes), verb, subject,
		whyLagging(v.nodes[nodes[0]].Agent))
}

// whyLagging says why a zone has not applied a plan.
func whyLagging(a *world.ZoneAgent) string {
	switch {
	case a.Unwritable != "":
		return a.Unwritable
	case a.Silent:
		return "its agent does not report (ovnkube-slb node --enable-l2)"
	}
	return "its agent reports no progress (ovnkube-slb node --enable-l2)"
}
