// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

// pauses are those between the claims of an address that came: some frames get lost, and a
// switch may forward nothing to a host for its first moments.
func pauses() []time.Duration {
	return []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
}

// claims are the addresses that the segment has yet to be told of.
type claims map[netip.Addr]*claim

type claim struct {
	device string
	at     time.Time
	made   int
}

// start begins to claim an address.
func (c claims) start(a netip.Addr, device string, now time.Time) {
	c[a] = &claim{device: device, at: now}
}

// make sends what is due and returns when the next one is, the zero time for never.
func (c claims) make(now time.Time) (next time.Time) {
	ports := map[string]*neighbour.Port{}
	for a, claim := range c {
		if !claim.at.After(now) {
			port, opened := ports[claim.device]
			if !opened {
				var err error
				if port, err = neighbour.Open(claim.device); err != nil {
					klog.ErrorS(err, "The segment can't be told of addresses", "interface", claim.device)
				}
				ports[claim.device] = port
			}
			if port != nil {
				if err := port.Claim(a); err != nil {
					klog.ErrorS(err, "The segment can't be told of an address", "interface", claim.device)
				}
			}
			if claim.made == len(pauses()) {
				delete(c, a)
				continue
			}
			claim.at = now.Add(pauses()[claim.made])
			claim.made++
		}
		if next.IsZero() || claim.at.Before(next) {
			next = claim.at
		}
	}
	for _, port := range ports {
		if port != nil {
			_ = port.Close()
		}
	}
	return next
}
