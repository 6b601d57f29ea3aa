// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

// announceIntervals returns the intervals between the announcements of a new address. Announcements are repeated
// because frames get lost, and a switch may not forward frames to a host at first.
func announceIntervals() []time.Duration {
	return []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
}

// claims are the addresses that are being announced on the segment.
type claims map[netip.Addr]*claim

type claim struct {
	device string
	at     time.Time
	sent   int
}

// start starts to announce an address.
func (c claims) start(a netip.Addr, device string, now time.Time) {
	c[a] = &claim{device: device, at: now}
}

// make sends the announcements that are due and returns when the next one is due, or the zero time.
func (c claims) make(now time.Time) (next time.Time) {
	ports := map[string]*neighbour.Port{}
	for a, claim := range c {
		if !claim.at.After(now) {
			port, opened := ports[claim.device]
			if !opened {
				var err error
				if port, err = neighbour.Open(claim.device); err != nil {
					klog.ErrorS(err, "Failed to open interface for address announcements", "interface", claim.device)
				}
				ports[claim.device] = port
			}
			if port != nil {
				if err := port.Claim(a); err != nil {
					klog.ErrorS(err, "Failed to announce address", "interface", claim.device)
				}
			}
			if claim.sent == len(announceIntervals()) {
				delete(c, a)
				continue
			}
			claim.at = now.Add(announceIntervals()[claim.sent])
			claim.sent++
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
