// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const aStranger = "02:00:00:00:00:99"

// watched is a controller's memory and a small world in which some nodes have guards.
type watched struct {
	*testing.T
	m   memory
	w   *world.Snapshot
	now time.Time
}

func newWatched(t *testing.T, guards int, services ...*world.Service) *watched {
	s := &watched{T: t, w: small(5, services...), now: time.Unix(1000, 0)}
	for _, n := range s.w.Nodes[:guards] {
		n.Guarded = true
	}
	return s
}

// expect makes a pass some time later, and compares what OVN is told and what guards are asked.
func (s *watched) expect(when string, later time.Duration, planned bool, questions map[string][]convert.Question) *decision {
	s.Helper()
	s.now = s.now.Add(later)
	s.w.Now = s.now
	d := s.m.decide(s.w)
	if got := d.plans[web] != nil; got != planned {
		s.Errorf("%s: announced %v, want %v", when, got, planned)
	}
	if d := cmp.Diff(questions, s.m.probation.questions(), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); d != "" {
		s.Errorf("%s: questions (-want +got):\n%s", when, d)
	}
	return d
}

func (s *watched) conflict(mac string) {
	s.w.Conflicts = map[netip.Addr]world.Conflict{netip.MustParseAddr("10.50.0.100"): {MAC: mac, Node: "n2", Since: s.now}}
}

func about(guard string, addrs ...string) map[string][]convert.Question {
	q := convert.Question{Network: "physnet"}
	for _, a := range addrs {
		q.Addresses = append(q.Addresses, netip.MustParseAddr(a))
	}
	return map[string][]convert.Question{guard: {q}}
}

func firstGateway(d *decision) string { return d.layout.Domains[0].Shards[0].Gateways[0].Node }

func TestWithoutGuardsNothingWaits(t *testing.T) {
	s := newWatched(t, 0, service(web, 1))
	s.expect("at once", 0, true, nil)
}

func TestANewAddressWaitsForSilence(t *testing.T) {
	s := newWatched(t, 3, service(web, 1))
	first := firstGateway(s.m.decide(small(5)))
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	if got, want := s.m.probation.end(), s.now.Add(silenceTime); !got.Equal(want) {
		t.Errorf("the next pass is at %s, want %s", got, want)
	}
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("the status shows it", silenceTime/2, false, about(first, "10.50.0.100"))
	s.expect("silence", silenceTime/2, true, nil)
	s.w.Services[0].Assigned = nil
	s.expect("somebody wiped the status", time.Second, true, nil)
	s.m = memory{}
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("another controller takes over", time.Second, true, nil)
}

func TestAfterSilenceAnAddressIsNew(t *testing.T) {
	s := newWatched(t, 3, service(web, 1))
	first := firstGateway(s.m.decide(small(5)))
	s.m = memory{}
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("it was announced before we came", 0, true, nil)
	s.w.Cluster.Switch.Mode = world.BGPOnly
	s.expect("layer 2 is switched off", time.Second, false, nil)
	s.w.Cluster.Switch.Mode = world.Layer2Only
	s.expect("and on", time.Hour, false, about(first, "10.50.0.100"))
	s.expect("silence", silenceTime, true, nil)
}

func TestAContestedAddressWaitsUntilNobodyAnswers(t *testing.T) {
	s := newWatched(t, 3, service(web, 1))
	first := firstGateway(s.m.decide(small(5)))
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	s.conflict(aStranger)
	d := s.expect("answered", 10*time.Millisecond, false, about(first, "10.50.0.100"))
	v := newVerdicts(d, knowledge{synced: true}).announced(s.w.Services[0])
	want := "10.50.0.100: answered for outside of the cluster by MAC 02:00:00:00:00:99 (seen by node n2 since 1970-01-01T00:16:40Z)"
	if v == nil || v.Reason != v1alpha1.ReasonAddressConflict || v.Message != want {
		t.Errorf("verdict %+v, want %q", v, want)
	}
	s.w.Services[0].Assigned = []netip.Addr{netip.MustParseAddr("10.50.0.100")}
	s.expect("and later", time.Minute, false, about(first, "10.50.0.100"))
	s.m = memory{}
	s.expect("another controller takes over", time.Minute, false, about(first, "10.50.0.100"))
	s.w.Conflicts = nil
	s.expect("the stranger is gone", time.Minute, true, nil)
}

// Our own gateway may still answer for the Service that had the address before.
func TestOurOwnAnswerIsNoConflict(t *testing.T) {
	s := newWatched(t, 3, service(web, 1))
	first := firstGateway(s.m.decide(small(5)))
	s.conflict(rows.PortMAC(s.w.Cluster.ID, world.ShardID{Domain: "lan"}))
	s.expect("new", 0, false, about(first, "10.50.0.100"))
	s.expect("later", silenceTime, true, nil)
}

// A guard that goes is replaced, and the time begins anew; with the last one nothing waits.
func TestGuardsThatGo(t *testing.T) {
	s := newWatched(t, 3, service(web, 1))
	gateways := s.m.decide(small(5)).layout.Domains[0].Shards[0].Gateways
	node := map[string]*world.Node{}
	for _, n := range s.w.Nodes {
		node[n.Name] = n
	}
	s.expect("new", 0, false, about(gateways[0].Node, "10.50.0.100"))
	node[gateways[0].Node].Guarded = false
	s.expect("one gone", silenceTime/2, false, about(gateways[1].Node, "10.50.0.100"))
	s.expect("not asked for long enough", silenceTime/2, false, about(gateways[1].Node, "10.50.0.100"))
	node[gateways[1].Node].Faults = map[string]string{"physnet": "no carrier"}
	s.expect("one without a link", 0, false, about(gateways[2].Node, "10.50.0.100"))
	for _, n := range s.w.Nodes {
		n.Guarded = false
	}
	s.expect("all gone", 0, true, nil)
}

// Where a guard is asked, a Service that comes is decided about with all others.
func TestNewAddressesAreNotAmendedWhereGuardsAre(t *testing.T) {
	s := newWatched(t, 1)
	d := s.m.decide(s.w)
	if s.m.amend(d, web, kube.Change{Is: service(web, 1)}) {
		t.Error("amended")
	}
}

func TestAGuardIsNotAskedForTooMuchAtATime(t *testing.T) {
	const most = mostAsked + 20
	s := newWatched(t, 3)
	for i := range most {
		s.w.Services = append(s.w.Services, service(world.Key{Namespace: "shop", Name: fmt.Sprint(i)}, i+1))
	}
	s.w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.50.0.0/16")
	w := small(most, s.w.Services...)
	s.w.Pools = w.Pools
	asked := func() int {
		n := 0
		for _, list := range s.m.probation.questions() {
			for _, q := range list {
				n += len(q.Addresses)
			}
		}
		return n
	}
	for i, want := range []int{mostAsked, most - mostAsked, 0} {
		s.w.Now = s.now.Add(time.Duration(i) * silenceTime)
		d := s.m.decide(s.w)
		if got := asked(); got != want {
			t.Errorf("pass %d: %d asked, want %d", i, got, want)
		}
		if got, want := len(d.plans), min(i*mostAsked, most); got != want {
			t.Errorf("pass %d: %d announced, want %d", i, got, want)
		}
	}
}
