// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var (
	otherShard   = world.ShardID{Domain: "wan"}
	otherService = world.Key{Namespace: "bank", Name: "web"}
	otherVIP     = netip.MustParseAddr("192.0.2.2")
)

// during runs a test in which the controller's runner applies the plans: those of a Service on each of n1 and n2, which
// have confirmed their addresses.
func during(t *testing.T, test func(r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.plans = map[world.Key]*plan.Service{
			service: planned(service, shard, vip), otherService: planned(otherService, otherShard, otherVIP)}
		r.runner = loop.New(r.Dataplane, loop.Options{})
		r.onRepeat = r.runner.Repeat
		go r.runner.Run(t.Context())
		r.observe(node("n1", "1", r.n1), node("n2", "1", r.n2))
		r.place("n1", "n2")
		r.expect(service, "n1", "")
		r.expect(otherService, "n2", "")
		test(r)
	})
}

// place makes nodes the gateways of the two shards, and waits until nothing happens without time passing.
func (r *running) place(gateway, other string) {
	topology := gateways(gateway)
	topology.Domains = append(topology.Domains, plan.Domain{Name: otherShard.Domain, Shards: []plan.Shard{{
		ID: otherShard, Gateways: []plan.Gateway{{Node: other, Chassis: other}}}}})
	r.runner.Set(topology, r.plans, nil)
	synctest.Wait()
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// expect checks the active gateway of a Service's shard, which is empty if there is none, and the Service's result: an
// error that contains a text, "pending", or nothing.
func (r *running) expect(key world.Key, active, result string) {
	r.Helper()
	states := r.observe(node("n1", "1", r.n1), node("n2", "1", r.n2))
	if got := states[r.plans[key].VIPs[0].Shard].Active; got != active {
		r.Errorf("%s: active is %q, want %q", key, got, active)
	}
	got := "no result"
	if is := r.runner.Result(key); is != nil {
		switch got = ""; {
		case is.Err != nil:
			got = is.Err.Error()
		case !is.Pending.IsZero():
			got = "pending"
		}
	}
	if got != result && (result == "" || !strings.Contains(got, result)) {
		r.Errorf("%s: %q, want %q", key, got, result)
	}
}

// assigned checks which node has the Service's address in its annotation.
func (r *running) assigned(a netip.Addr, want string) {
	r.Helper()
	var got []string
	for _, node := range []string{"n1", "n2"} {
		if r.has(node, a) {
			got = append(got, node)
		}
	}
	if strings.Join(got, " ") != want {
		r.Errorf("%s is assigned to %q, want %q", a, got, want)
	}
}

// changeOther gives the Service on n2 another address, which n2 confirms without time passing.
func (r *running) changeOther() {
	r.Helper()
	began, a := time.Now(), netip.MustParseAddr("192.0.2.3")
	if r.has("n2", a) {
		a = otherVIP
	}
	r.plans[otherService], r.settled = planned(otherService, otherShard, a), nil
	r.runner.Change(map[world.Key]*plan.Service{otherService: r.plans[otherService]})
	synctest.Wait()
	r.expect(otherService, "n2", "")
	r.assigned(a, "n2")
	if !slices.Equal(r.settled, []world.Key{otherService}) {
		r.Errorf("no longer pending are %v", r.settled)
	}
	if took := time.Since(began); took != 0 {
		r.Errorf("another Service has waited for %s", took)
	}
}

// A gateway that does not confirm what it has taken delays no Service on another one, and its own is never announced.
func TestGatewayThatConfirmsNothingDelaysNoOther(t *testing.T) {
	during(t, func(r *running) {
		r.n1.set(func() { r.n1.hangs = true })
		another := world.Key{Namespace: "shop", Name: "another"}
		r.plans[another] = planned(another, shard, netip.MustParseAddr("192.0.2.9"))
		r.place("n1", "n2")
		r.expect(another, "n1", "pending")
		r.changeOther()
		pass(handoverTime - 1)
		r.expect(another, "n1", "pending")
		r.expect(service, "n1", "")
		pass(1)
		r.expect(another, "n1", errUnconfirmed.Error())
		r.expect(service, "n1", "")
		r.changeOther()
		r.n1.set(func() { r.n1.hangs = false })
		pass(time.Minute)
		r.expect(another, "n1", "")
	})
}

// Another node takes an address once the one before has confirmed that it has released it, without time passing, or
// when its time is up. The changes of other Services don't wait meanwhile, and the address is not announced.
func TestHandoverWaitsInBackground(t *testing.T) {
	broken := status.Error(codes.Internal, "broken")
	for name, change := range map[string]func(*fakeAgent){
		"hangs": func(a *fakeAgent) { a.hangs = true }, "fails": func(a *fakeAgent) { a.broken = broken },
		"can't release it": func(a *fakeAgent) { a.failed = map[netip.Addr]string{vip: "busy"} },
		"ends the stream":  func(a *fakeAgent) { a.broken = status.Error(codes.DeadlineExceeded, "CANCEL") },
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(r *running) {
				r.n1.set(func() { change(r.n1) })
				r.place("n2", "n2")
				r.assigned(vip, "")
				r.expect(service, "n1", "pending")
				r.changeOther()
				pass(handoverTime - 1)
				r.assigned(vip, "")
				pass(1)
				r.assigned(vip, "n2")
				r.expect(service, "n2", "")
			})
		})
	}
	t.Run("confirms", func(t *testing.T) {
		during(t, func(r *running) {
			r.n1.onWatch = func() { r.expect(service, "n1", "pending") }
			r.place("n2", "n2")
			r.assigned(vip, "n2")
			r.expect(service, "n2", "")
			if r.drifts > 0 {
				t.Errorf("%d drifts", r.drifts)
			}
		})
	})
}

// Nothing is awaited of a gateway that is lost, before or while its addresses move.
func TestAddressesOfLostGatewayMoveAtOnce(t *testing.T) {
	lose := func(r *running) {
		r.n1.set(func() { r.n1.unfit = status.Error(codes.FailedPrecondition, "no carrier") })
		pass(probeEvery)
	}
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before: ", before), func(t *testing.T) {
			during(t, func(r *running) {
				r.n1.set(func() { r.n1.hangs = true })
				if before {
					lose(r)
				}
				r.place("n2", "n2")
				if !before {
					r.assigned(vip, "")
					lose(r)
				}
				r.assigned(vip, "n2")
				r.expect(service, "n2", "")
			})
		})
	}
}

// What an agent can't do is the error of its Service, without a retry in between, and its gateway is not active. So is
// an agent that gives no valid answer, or that ends the request itself, when its time is up.
func TestErrorOfAgentIsThatOfItsService(t *testing.T) {
	during(t, func(r *running) {
		r.n2.refuse(vip)
		r.place("n2", "n2")
		r.expect(service, "", "address 192.0.2.1 on node n2: the interface has it, and not from here")
		r.expect(otherService, "n2", "")
		r.n2.refuse()
		r.place("n1", "n2")
		pass(askPause) // what n2 holds may be asked again at this moment, because its failed addresses have changed
		r.expect(service, "n1", "")
		if r.drifts > 0 {
			t.Errorf("%d drifts", r.drifts)
		}
	})
	for text, broken := range map[string]error{"broken": status.Error(codes.Internal, "broken"),
		errUnconfirmed.Error(): status.Error(codes.DeadlineExceeded, "stream terminated by RST_STREAM")} {
		during(t, func(r *running) {
			r.n2.set(func() { r.n2.broken = broken })
			r.place("n2", "n2")
			r.expect(service, "n1", "pending")
			pass(handoverTime)
			r.expect(service, "", text)
		})
	}
}

// An answer about a version of the Node says nothing of what later versions contain.
func TestAnswerIsAboutOneVersion(t *testing.T) {
	now, c := time.Unix(1000, 0), confirmations{}
	c.written(sdn.Step{Node: "n1", New: []netip.Addr{vip}}, "7", nil, now)
	step := sdn.Step{Node: "n1", Removed: []netip.Addr{vip}, New: []netip.Addr{otherVIP}}
	c.written(step, "8", nil, now.Add(time.Second))
	if out := c.answered("n1", "7", nil, nil, nil, now); len(out.confirmed)+len(out.released) > 0 {
		t.Errorf("version 7: %v", out)
	}
	version, until, ok := c["n1"].next()
	if version != "8" || !until.Equal(now.Add(time.Second+handoverTime)) || !ok {
		t.Errorf("next is version %q until %s", version, until)
	}
	out := c.answered("n1", "9", nil, nil, nil, now)
	want := answers{confirmed: []at{{"n1", otherVIP}}, released: []release{{at: at{"n1", vip}}}}
	if fmt.Sprint(out) != fmt.Sprint(want) {
		t.Errorf("version 9: %v", out)
	}
}

// The removal of a Service fails as long as a node that has an address of it can't be updated, whatever is with others.
func TestRemovalDependsOnNodesOfItsService(t *testing.T) {
	during(t, func(r *running) {
		refuse := func(nodes ...string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.writeErrors = map[string]error{}
			for _, node := range nodes {
				r.writeErrors[node] = errors.New("annotations are too long")
			}
		}
		remove := func(key world.Key) { r.runner.Change(map[world.Key]*plan.Service{key: nil}); synctest.Wait() }
		refuse("n2")
		r.plans[otherService] = planned(otherService, otherShard, netip.MustParseAddr("192.0.2.3"))
		r.place("n1", "n2")
		r.expect(otherService, "n2", "too long")
		remove(service)
		r.assigned(vip, "")
		if got := r.runner.Result(service); got != nil {
			t.Errorf("n2 can't be updated, and the removal of a Service on n1 has failed: %v", got.Err)
		}
		remove(otherService)
		if got := r.runner.Result(otherService); got == nil || got.Err == nil {
			t.Error("n2 can't be updated, and a Service has been removed from it")
		}
		refuse()
		pass(time.Minute)
		r.assigned(otherVIP, "")
		if got := r.runner.Result(otherService); got != nil {
			t.Errorf("n2 can be updated, and the removal has failed: %v", got.Err)
		}
	})
}
