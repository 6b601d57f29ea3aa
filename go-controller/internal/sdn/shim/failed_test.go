// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"testing"
	"time"
)

// A gateway loses an address that it has confirmed, and gets it back, while the controller writes nothing.
func TestConfirmedAddressFailsLater(t *testing.T) {
	during(t, func(r *running) {
		writes := r.writes
		pass(probeEvery) // the agent has reported that nothing has failed
		r.n1.refuse(vip)
		pass(2 * probeEvery)
		r.expect(service, "", "address 192.0.2.1 on node n1: the interface has it, and not from here")
		r.expect(otherService, "n2", "")
		r.n1.refuse()
		pass(2 * probeEvery)
		r.expect(service, "n1", "")
		if r.writes != writes {
			t.Errorf("%d writes", r.writes-writes)
		}
	})
}

// An agent is asked again when what has failed changes, and until it has answered, but not in between.
func TestAgentIsAskedOncePerChangeOfFailedAddresses(t *testing.T) {
	during(t, func(r *running) {
		asked := r.n2.asked
		pass(10 * probeEvery)
		if r.n2.asked != asked {
			t.Errorf("asked %d times without a change", r.n2.asked-asked)
		}
		r.n2.set(func() { r.n2.hangs = true })
		r.n2.refuse(otherVIP)
		pass(10 * probeEvery)
		r.expect(otherService, "n2", "")
		r.n2.set(func() { r.n2.hangs = false })
		pass(2*probeEvery + handoverTime)
		r.expect(otherService, "", "not from here")
	})
}

// An address that the agent can't remove, or that is not assigned to it, concerns no Service.
func TestFailedAddressThatIsNotAssignedChangesNothing(t *testing.T) {
	during(t, func(r *running) {
		asked := r.n1.asked
		r.n1.refuse(otherVIP)
		pass(time.Minute)
		r.expect(service, "n1", "")
		r.expect(otherService, "n2", "")
		if n := r.n1.asked - asked; n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}
