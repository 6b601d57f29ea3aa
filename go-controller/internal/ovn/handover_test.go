// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// heir returns a Service that has the addresses of another one.
func heir(of *plan.Service, name, backend string) *plan.Service {
	p := *of
	p.Key = world.Key{Namespace: "default", Name: name}
	p.Listeners = nil
	for _, l := range of.Listeners {
		l.Backends = service(1, 1, backend).Listeners[0].Backends
		if !l.VIP.Is4() {
			l.Backends = nil
		}
		p.Listeners = append(p.Listeners, l)
	}
	return &p
}

// An address that passes from one Service to another is never in load balancers of both, whatever else changes at the
// same time and however many transactions that takes.
func TestAddressIsTakenBeforeItIsGiven(t *testing.T) {
	t.Parallel()
	s, _ := ready(t, 2)
	vips := []string{}
	var watched atomic.Bool
	d, _ := connect(t, Options{NB: Endpoint{Address: "unix:" + s.socket}, Transacted: func(error) {
		if watched.Load() {
			s.haveOneOwner(t, vips)
		}
	}})
	configure(t, d, topology(2))
	var old []*plan.Service
	for i := range 2 * maxChanges / 4 {
		old = append(old, service(i+1, 2, "10.244.1.10"))
	}
	apply(t, d, old...)
	gone, moves := old[len(old)-1], old[len(old)-2]
	there, later := service(len(old)+1, 2, "10.244.1.10"), old[:len(old)-2]
	there.Key = moves.Key
	var changes []dataplane.Change
	for _, p := range []*plan.Service{heir(gone, "a", "10.244.2.10"), heir(moves, "b", "10.244.2.10"), there} {
		changes = append(changes, dataplane.Change{Key: p.Key, Want: p})
	}
	for _, p := range later {
		changes = append(changes, dataplane.Change{Key: p.Key, Want: heir(p, p.Key.Name, "10.244.2.10")})
	}
	changes = append(changes, dataplane.Change{Key: gone.Key})
	vips = append(vips, gone.VIPs[0].Addr.String()+":80", moves.VIPs[0].Addr.String()+":80")
	watched.Store(true)
	for key, err := range d.Apply(t.Context(), changes) {
		t.Errorf("apply %s: %v", key, err)
	}
}

// After a restart, rows of Services that have been deleted meanwhile are there until they are pruned, after all pending
// changes. Those that have an address of another Service now are taken out of service before it gets the address.
func TestAddressIsTakenFromUnprunedRows(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	gone, other := service(1, 2, "10.244.1.10"), service(2, 2, "10.244.1.10")
	apply(t, d, gone, other)
	d, _ = dial(t, s)
	configure(t, d, topology(2))
	apply(t, d, heir(gone, "a", "10.244.2.10"))
	s.haveOneOwner(t, []string{gone.VIPs[0].Addr.String() + ":80", other.VIPs[0].Addr.String() + ":80"})
	if n := strings.Count(s.nbctl(t, "lb-list"), "slb-default/s2"); n != 4 {
		t.Errorf("%d load balancers of a Service that may have its plan later, want 4", n)
	}
}

// A Service that shares its address, or whose plan without it comes later, keeps its other ports meanwhile.
func TestUnprunedRowsKeepWhatStaysTheirs(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	shares := service(1, 2, "10.244.1.10")
	gets := heir(shares, "a", "10.244.2.10")
	https := shares.Listeners[0]
	https.Port = 443
	shares.Listeners = slices.Insert(shares.Listeners, 1, https)
	apply(t, d, shares)
	d, _ = dial(t, s)
	configure(t, d, topology(2))
	apply(t, d, gets)
	at := shares.VIPs[0].Addr.String()
	s.haveOneOwner(t, []string{at + ":80", at + ":443"})
	if list := s.nbctl(t, "lb-list"); !strings.Contains(list, " "+at+":443 ") {
		t.Errorf("%s:443, which no other Service gets, is not served until the Service's turn:\n%s", at, list)
	}
}

// The ACLs of a Service with source ranges neither close nor open a port that another Service gets, also before the
// Service's turn after a restart.
func TestUnprunedACLsLeaveWhatPasses(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 2)
	shares := service(1, 2, "10.244.1.10")
	gets := heir(shares, "a", "10.244.2.10") // TCP 80 and UDP 53
	https := shares.Listeners[0]
	https.Port = 443
	shares.Listeners = slices.Insert(shares.Listeners, 1, https)
	shares.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("0.0.0.0/0")}
	gets.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: prefixes("192.0.2.0/24")}
	apply(t, d, shares)
	at := shares.VIPs[0].Addr.String()
	acls := func(service string) string {
		return s.nbctl(t, "--bare", "--columns=match", "find", "ACL", "external_ids:\""+rows.KeyService+"\"="+service)
	}
	d, _ = dial(t, s)
	configure(t, d, topology(2))
	apply(t, d, gets)
	left, fragments := "ip4.dst == "+at+" && tcp.dst == {443}", " && ip.is_frag"
	got := strings.Split(strings.ReplaceAll(acls("default/s1"), "\n\n", "\n"), "\n")
	slices.Sort(got)
	// Its fragments pass no longer: they could be for the port that it gave up.
	if !slices.Equal(got, []string{"ip4.dst == " + at + " && tcp" + fragments, left, left + " && ip4.src == {0.0.0.0/0}",
		"ip4.dst == " + at + " && udp" + fragments}) {
		t.Errorf("ACLs of the Service that gave up a port: %q", got)
	}
	if got := acls("default/a"); strings.Count(got, "{80}") != 2 || strings.Count(got, "{53}") != 2 {
		t.Errorf("ACLs of the Service that got it: %s", got)
	}
}

// haveOneOwner checks that at most one load balancer per protocol has each of some addresses and ports.
func (s *server) haveOneOwner(t *testing.T, vips []string) {
	t.Helper()
	list := s.nbctl(t, "lb-list")
	for _, vip := range vips {
		n := 0
		for line := range strings.Lines(list) {
			if strings.Contains(line, " "+vip+" ") && strings.Contains(line, " tcp ") {
				n++
			}
		}
		if n > 1 {
			t.Errorf("%d load balancers have %s", n, vip)
		}
	}
}
