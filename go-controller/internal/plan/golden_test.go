// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The VIPs are those in the status of the Services.
func TestGoldens(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(c *golden.Case) string {
		var out strings.Builder
		for _, s := range c.World.Services {
			var vips []plan.VIP
			for _, a := range s.Assigned {
				vips = append(vips, plan.VIP{Addr: a})
			}
			p := plan.For(s, vips, plan.NewReachability(c.World))
			for _, f := range []world.Family{world.IPv4, world.IPv6} {
				if sources, restricted := p.SourceRanges[f]; restricted {
					fmt.Fprintf(&out, "%s: %s from %v\n", p.Key, f, sources)
				}
			}
			if len(p.Unreachable) > 0 {
				fmt.Fprintf(&out, "%s: outside %v\n", p.Key, p.Unreachable)
			}
			for _, l := range p.Listeners {
				fmt.Fprintf(&out, "%s: %s %s %d ->", p.Key, l.VIP, l.Protocol, l.Port)
				backends(&out, l.Backends)
				if len(l.Draining) > 0 {
					out.WriteString(" draining")
					backends(&out, l.Draining)
				}
				out.WriteString("\n")
			}
		}
		return out.String()
	})
}

func backends(out *strings.Builder, list []plan.Backend) {
	for _, b := range list {
		fmt.Fprintf(out, " %s@%s", b.Addr, b.Node)
		if b.HostNetwork {
			out.WriteString(" (host)")
		}
	}
}
