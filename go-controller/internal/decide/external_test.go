// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var listed = netip.MustParseAddr("10.50.0.105")

// external returns a snapshot in which one Service holds listed, and an older Service in another namespace also lists
// it now.
func external(holder, older *world.Service) *world.Snapshot {
	w := worldtest.Small(10, holder)
	if older != nil {
		w.Services = append(w.Services, older)
	}
	w.Pools[0].ExternalIPs = true
	return w
}

func lists(key world.Key, age int) *world.Service {
	s := worldtest.Service(key, age)
	s.ExternalIPs = []netip.Addr{listed}
	return s
}

func hasListed(t *testing.T, d *Decision, whom, not *world.Service, when string) {
	t.Helper()
	has := func(s *world.Service) bool { return slices.Contains(d.Allocation.Services[s.Key].External, listed) }
	if !has(whom) || has(not) {
		t.Errorf("%s: the holder has it: %t; the other one: %t", when, has(whom), has(not))
	}
}

// An older Service that starts to list the address does not get it, whether or not the holder's status already shows
// the address. The same applies after a restart.
func TestExternalIPHolderKeepsItAgainstAnOlderService(t *testing.T) {
	older := lists(world.Key{Namespace: "attacker", Name: "older"}, 1)
	holder := lists(web, 2)
	var m State
	m.Decide(external(holder, nil))
	hasListed(t, m.Decide(external(holder, older)), holder, older, "before the status shows it")

	shown := *holder
	shown.HeldExternalIPs = []netip.Addr{listed}
	hasListed(t, m.Decide(external(&shown, older)), &shown, older, "once the status shows it")
	var restarted State
	hasListed(t, restarted.Decide(external(&shown, older)), &shown, older, "after a restart")

	gaveUp := shown
	gaveUp.ExternalIPs = nil
	for what, state := range map[string]*State{"same leader": &m, "next leader": {}} {
		if d := state.Decide(external(&gaveUp, older)); slices.Contains(d.Allocation.Services[older.Key].External, listed) {
			t.Errorf("%s: the older one gets it although the status of the holder shows it", what)
		}
		// The status of the holder can't be written, for example because the object is too large, and it returns.
		hasListed(t, state.Decide(external(&shown, older)), &shown, older, what+", when the holder lists it again")
	}
	released := gaveUp
	released.HeldExternalIPs = nil
	hasListed(t, m.Decide(external(&released, older)), older, &released, "once the status of the holder does not show it")
}

// Two controllers that run at the same time converge: an address in a status counts if it differs from what this
// controller writes.
func TestExternalIPInAStatusWrittenByAnotherControllerCounts(t *testing.T) {
	older, holder := lists(world.Key{Namespace: "attacker", Name: "older"}, 1), lists(web, 2)
	var m State
	hasListed(t, m.Decide(external(holder, older)), older, holder, "without a status")
	shown := *holder
	shown.HeldExternalIPs = []netip.Addr{listed}
	before := *older
	before.HeldExternalIPs = []netip.Addr{netip.MustParseAddr("10.50.0.109")}
	hasListed(t, m.Decide(external(&shown, &before)), &shown, &before, "once another one has written its own")
}
