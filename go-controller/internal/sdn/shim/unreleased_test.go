// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// generation returns that of an address in the annotation of a node.
func (r *running) generation(node string, a netip.Addr) uint64 {
	r.Dataplane.mu.Lock()
	defer r.Dataplane.mu.Unlock()
	return r.have[node][a].Generation
}

// While a gateway is lost, or does not release an address in time, both may have answered for it, and clients may have
// resolved the former one. Once that has released the address, the present one announces it again, once.
func TestAddressIsAnnouncedAgainAfterALateRelease(t *testing.T) {
	lost := status.Error(codes.FailedPrecondition, "no carrier")
	for name, unfit := range map[string]error{"lost": lost, "hangs": nil} {
		t.Run(name, func(t *testing.T) {
			during(t, func(r *running) {
				r.n1.set(func() { r.n1.unfit, r.n1.hangs = unfit, true })
				pass(probeEvery)
				r.place("n2", "n2")
				pass(handoverTime)
				r.assigned(vip, "n2")
				moved := r.generation("n2", vip)
				r.n1.set(func() { r.n1.unfit = nil })
				pass(time.Minute)
				if got := r.generation("n2", vip); got != moved {
					t.Errorf("n1 has not released the address, and its generation is %d, want %d", got, moved)
				}
				r.n1.set(func() { r.n1.hangs = false })
				pass(time.Minute)
				if got := r.generation("n2", vip); got != moved+1 {
					t.Errorf("n1 has released the address, and its generation is %d, want %d", got, moved+1)
				}
				r.assigned(vip, "n2")
				r.expect(service, "n2", "")
				if other := r.generation("n2", otherVIP); other != 1 || r.drifts > 0 {
					t.Errorf("the generation of another address is %d; %d drifts", other, r.drifts)
				}
				asked := r.n1.asked
				if pass(time.Minute); r.n1.asked != asked {
					t.Error("n1 is still asked")
				}
			})
		})
	}
}

// An address that has returned to the gateway before, or is no longer assigned, needs no announcement.
func TestLateReleaseOfAnAddressThatHasReturned(t *testing.T) {
	during(t, func(r *running) {
		r.n1.set(func() { r.n1.hangs = true })
		r.place("n2", "n2")
		pass(handoverTime)
		r.assigned(vip, "n2")
		r.place("n1", "n2")
		r.assigned(vip, "n1")
		returned := r.generation("n1", vip)
		r.n1.set(func() { r.n1.hangs = false })
		pass(time.Minute)
		r.expect(service, "n1", "")
		if got := r.generation("n1", vip); got != returned {
			t.Errorf("the generation is %d, want %d", got, returned)
		}
	})
}
