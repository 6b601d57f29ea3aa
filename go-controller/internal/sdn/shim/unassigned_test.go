// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var (
	another    = world.Key{Namespace: "shop", Name: "another"}
	anotherVIP = netip.MustParseAddr("192.0.2.9")
)

// lists has the kubelet of a node write an annotation that lists addresses, all of the same shard.
func (r *running) lists(name string, addrs ...netip.Addr) {
	// The version of the other node is older than the one that is known.
	nodes := map[string]*world.Node{"n1": node("n1", "1", r.n1), "n2": node("n2", "1", r.n2)}
	agent := map[string]*fakeAgent{"n1": r.n1, "n2": r.n2}[name]
	nodes[name] = node(name, r.newVersion(), agent, addrs...)
	r.observe(nodes["n1"], nodes["n2"])
}

// insists has the kubelet of a node list addresses after each write of its Node, or during it if the delay is zero.
// Each of these changes needs a repair.
func (r *running) insists(name string, delay time.Duration, addrs ...netip.Addr) {
	r.onDrift = func() bool { r.runner.Resync(); return true }
	r.onRepeat = func(keys []world.Key) {
		r.set(func() { r.repetitions++ })
		r.runner.Repeat(keys)
	}
	writes, most := 0, 20*dataplane.DriftBurst // without a limit, writes without a pace would not end
	r.onWrite = func(to string) {
		undo := false
		r.set(func() {
			if to == name {
				writes++
				undo = writes <= most
			}
		})
		switch {
		case undo && delay == 0:
			r.lists(name, addrs...)
		case undo:
			time.AfterFunc(delay, func() { r.lists(name, addrs...) })
		}
	}
	r.lists(name, addrs...)
}

// expectPace checks that a node whose kubelet undoes what is written has been repaired at the pace of repairs for two
// minutes. Beside that, a Service is applied again when an address is released, when the wait for it is over, and when
// it fails.
func (r *running) expectPace() {
	r.Helper()
	if most := dataplane.DriftBurst + 10; r.drifts > most || r.repetitions > 5 {
		r.Errorf("%d repairs, want at most %d; Services are repeated %d times", r.drifts, most, r.repetitions)
	}
}

// add adds a Service whose address is to be on the gateway of the shard.
func (r *running) add() {
	r.plans[another] = planned(another, shard, anotherVIP)
	r.runner.Change(map[world.Key]*plan.Service{another: r.plans[another]})
	synctest.Wait()
}

// A kubelet that lists an address of a Service whose shard is on another gateway, and undoes each repair, keeps it from
// that gateway until its agent has confirmed one release, or for handoverTime.
func TestListedAddressIsTakenByItsGatewayAlthoughItIsListedAgain(t *testing.T) {
	for _, c := range []struct {
		hangs bool
		delay time.Duration
	}{{false, 0}, {false, time.Millisecond}, {true, 0}, {true, time.Millisecond}} {
		t.Run(fmt.Sprintf("the agent hangs: %t, listed again after %s", c.hangs, c.delay), func(t *testing.T) {
			during(t, func(r *running) {
				r.n2.set(func() { r.n2.hangs = c.hangs })
				r.insists("n2", c.delay, otherVIP, anotherVIP)
				pass(time.Minute) // the next repair is in half a minute
				r.add()
				if got := r.has("n1", anotherVIP); got == c.hangs {
					t.Errorf("n1 has the address without time passing: %t", got)
				}
				pass(handoverTime + 2*c.delay) // the node lists it again after it was written
				r.assigned(anotherVIP, "n1 n2")
				r.expect(another, "n1", "")
				pass(time.Minute + c.delay)
				r.assigned(anotherVIP, "n1 n2")
				r.expectPace()
			})
		})
	}
}

// The same goes for the gateway from which an address has moved.
func TestMovedAddressIsTakenAlthoughTheGatewayBeforeListsIt(t *testing.T) {
	during(t, func(r *running) {
		r.n1.set(func() { r.n1.hangs = true })
		r.insists("n1", 0, vip)
		r.place("n2", "n2")
		r.assigned(vip, "n1")
		pass(handoverTime)
		r.assigned(vip, "n1 n2")
		r.expect(service, "n2", "")
		pass(2 * time.Minute)
		r.assigned(vip, "n1 n2")
		r.expectPace()
	})
}

// It is taken at that time although nothing else happens then, and no repair is due.
func TestMovedAddressIsTakenWhenItsTimeIsUp(t *testing.T) {
	during(t, func(r *running) {
		r.n1.set(func() { r.n1.hangs = true })
		r.place("n2", "n2")
		r.lists("n1", vip)
		pass(handoverTime - 1)
		r.assigned(vip, "n1")
		pass(1)
		r.assigned(vip, "n2")
		r.expect(service, "n2", "")
	})
}

// Each release that an agent confirms, and its kubelet undoes, is a repair, whatever else an address waits for.
func TestReleasesThatAreUndoneAfterTheirConfirmationArePaced(t *testing.T) {
	during(t, func(r *running) {
		r.set(func() { r.writeErrors["n1"] = errors.New("annotations are too long") })
		r.insists("n2", time.Millisecond, otherVIP, anotherVIP)
		r.add()
		pass(2 * time.Minute)
		r.expect(another, "n1", "too long")
		r.expectPace()
	})
}

// A gateway that is slow to release what we assigned to it is awaited after each assignment.
func TestSlowGatewayIsAwaitedAfterEachAssignment(t *testing.T) {
	during(t, func(r *running) {
		for range 3 {
			r.n1.set(func() { r.n1.hangs = true })
			r.lists("n1", vip) // with a new version
			r.place("n2", "n2")
			r.assigned(vip, "")
			pass(handoverTime - 1)
			r.assigned(vip, "")
			pass(1)
			r.assigned(vip, "n2")
			r.n1.set(func() { r.n1.hangs = false })
			r.place("n1", "n2")
			r.assigned(vip, "n1")
			r.expect(service, "n1", "")
		}
	})
}

// A node keeps what we assigned to it until it could be instructed to release it. What it lists otherwise is taken
// after handoverTime. A new controller concludes what was assigned from the statuses of the domains.
func TestNewControllerAwaitsTheActiveGatewayOfTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		active       string
		prune, waits bool
	}{
		"n1 is active":                      {active: "n1", waits: true},
		"n2 is active":                      {active: "n2"},
		"n1 is active, and the plan is new": {active: "n1", prune: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				r.Observe(&world.Snapshot{
					Nodes: []*world.Node{node("n1", "1", r.n1, vip), node("n2", "1", r.n2, otherVIP)},
					Domains: []*world.Domain{{Name: shard.Domain, Gateways: map[int][]string{0: {"n1", "n2"}},
						Active: map[int]string{0: c.active}}},
				})
				r.writeErrors["n1"] = errors.New("etcd is slow")
				_ = r.Configure(t.Context(), gateways("n2"))
				if c.prune {
					_ = r.Prune(t.Context(), func(world.Key) bool { return false })
				}
				apply := func() {
					t.Helper()
					change := dataplane.Change{Key: service, Want: planned(service, shard, vip, otherVIP)}
					if err := r.Apply(t.Context(), []dataplane.Change{change})[service]; err == nil {
						t.Error("n1 can't be written, and there is no error")
					}
				}
				apply()
				if r.has("n2", vip) {
					t.Error("n2 has the address without any wait")
				}
				pass(handoverTime)
				apply()
				if got := r.has("n2", vip); got == c.waits {
					t.Errorf("n2 has the address: %t", got)
				}
			})
		})
	}
}

// An address is pending since it began to wait, although what it waits for has begun anew.
func TestAddressIsPendingSinceItBeganToWait(t *testing.T) {
	during(t, func(r *running) {
		began := time.Now()
		r.n1.set(func() { r.n1.hangs = true })
		r.onDrift = func() bool { r.runner.Resync(); return true }
		r.add()
		for range 40 {
			pass(handoverTime / 2)
			r.lists("n1", vip) // its kubelet removes the new address
			synctest.Wait()
			if got := r.runner.Result(another); got.Err != nil || !got.Pending.Equal(began) {
				t.Fatalf("%v, pending since %v, want %v", got.Err, got.Pending, began)
			}
		}
		r.n1.set(func() { r.n1.hangs = false })
		pass(handoverTime)
		r.expect(another, "n1", "")
	})
}

// A node that lists an address of a shard that its gateway can't hold does not become the active gateway: for a new
// controller, it would be what the status of the domain names.
func TestNodeThatListsAnAddressOnItsOwnIsNotActive(t *testing.T) {
	during(t, func(r *running) {
		r.n1.refuse(vip)
		pass(2 * probeEvery)
		r.insists("n2", 0, otherVIP, vip)
		pass(time.Minute)
		r.assigned(vip, "n1 n2")
		r.expect(service, "", "not from here")
	})
}

// An address that gets another node waits for it since it began to wait, unless the previous one had reported an error.
// Others that list it are awaited again.
func TestWaitForAnotherNodeBeginsAnew(t *testing.T) {
	for _, refused := range []bool{false, true} {
		d := New(Options{})
		d.placed = map[netip.Addr]placed{vip: {node: "n2"}}
		began := time.Now().Add(-time.Hour)
		d.waiting[vip] = &wait{node: "n1", since: began, until: began, expired: true, released: map[string]bool{"n3": true}}
		if refused {
			d.confirmations.of("n1").byAddr[vip] = &request{err: errUnconfirmed}
		}
		d.refresh(vip)
		w := d.waiting[vip]
		if w.node != "n2" || w.since.Equal(began) == refused || w.expired || w.over("n3", time.Now()) {
			t.Errorf("refused: %t: %+v", refused, w)
		}
	}
}
