// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A node that is taken over writes as many faults into its Lease as fit into 256 KiB. That must not slow down decisions
// about Services with externalTrafficPolicy: Local.
func TestFaultsOfOneNodeDoNotDelayTheSurvey(t *testing.T) {
	took := func(faults int) time.Duration {
		w := large(200)
		w.Services = w.Services[:2000]
		bad := w.Nodes[0]
		bad.Faults = map[string]world.Fault{}
		for i := range faults {
			bad.Faults[fmt.Sprintf("%04x", i)] = world.Fault{Message: "m"}
		}
		for i, s := range w.Services {
			s.LocalPolicy = true
			// Each Service has a pod (a mirror Pod of the kubelet will do) on the bad node, and some elsewhere.
			nodes := []string{bad.Name, w.Nodes[1+i%199].Name, w.Nodes[1+(i/199*7+i)%199].Name}
			s.Slices = []*world.Slice{{Family: world.IPv4, Ports: s.Slices[0].Ports}}
			for j, n := range nodes {
				s.Slices[0].Endpoints = append(s.Slices[0].Endpoints, world.Endpoint{
					Addr: netip.AddrFrom4([4]byte{10, 244, byte(i), byte(j + 1)}), Node: n, Ready: true, Serving: true})
			}
		}
		l := compute(w)
		start := time.Now()
		r := l.Survey()
		for _, s := range w.Services {
			r.Of(s, s.Assigned[0])
		}
		return time.Since(start)
	}
	without, with := took(0), took(11_000)
	t.Logf("without faults %s, with 11,000 of one node %s", without, with)
	if with > 10*without+time.Second {
		t.Errorf("a survey takes %s instead of %s", with, without)
	}
}
