// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// shelf has the addresses of one family that were taken under a sharing key.
type shelf struct {
	key    string
	family world.Family
}

// shelfPort is a port of the Services that share addresses of a shelf.
type shelfPort struct {
	shelf
	protocol world.Protocol
	port     uint16
}

// clash says why two Services can't have one address, empty if they can: they need the
// same sharing key, different ports and, unless both have externalTrafficPolicy: Cluster,
// the same pods.
func clash(a, b *world.Service) string {
	if a.SharingKey == "" || a.SharingKey != b.SharingKey {
		return "they don't have the same key in allow-shared-ip"
	}
	for _, p := range a.Ports {
		if listens(b, p) {
			return fmt.Sprintf("both have port %d/%s", p.Port, p.Protocol)
		}
	}
	if (a.LocalPolicy || b.LocalPolicy) && (len(a.Selector) == 0 || !maps.Equal(a.Selector, b.Selector)) {
		return "with spec.externalTrafficPolicy: Local both need the same spec.selector"
	}
	return ""
}

func listens(s *world.Service, p world.Port) bool {
	return slices.ContainsFunc(s.Ports, func(q world.Port) bool { return q.Protocol == p.Protocol && q.Port == p.Port })
}

// holders lists the Services that have an address.
func (l *ledger) holders(a netip.Addr) []int {
	first, taken := l.holder[a]
	if !taken {
		return nil
	}
	return append([]int{first}, l.sharers[a]...)
}

func (l *ledger) holds(a netip.Addr, service int) bool {
	first, taken := l.holder[a]
	return taken && (first == service || slices.Contains(l.sharers[a], service))
}

// obstacle returns the first one of those who have an address that the Service can't
// share it with, and why; empty if there is none.
func (l *ledger) obstacle(a netip.Addr, service int) (other int, why string) {
	if !l.taken(a) {
		return 0, ""
	}
	for _, other := range l.holders(a) {
		if other == service {
			continue
		}
		if why := clash(l.services[service], l.services[other]); why != "" {
			return other, why
		}
	}
	return 0, ""
}

// notShared adds to a message about an address that another one has why it is not shared, for
// Services that wish to share.
func notShared(s *world.Service, why string) string {
	if s.SharingKey == "" {
		return ""
	}
	return "; it is not shared: " + why
}

// share fills gets with addresses that the Service can share, and returns the families
// that are still missing.
func (d *desk) share(service int, had perFamily, gets *perFamily, pools []*pool, missing []world.Family) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		a, ok := d.shared(service, f, pools, purchase{d.services[service], had, *gets})
		if ok {
			*gets.of(f) = a
		}
		return ok
	})
}

// shared finds an address of others that a Service can share: the first one taken, of
// the pools.
func (d *desk) shared(service int, f world.Family, pools []*pool, b purchase) (netip.Addr, bool) {
	s := b.service
	if s.SharingKey == "" {
		return netip.Addr{}, false
	}
	list := d.shelves[shelf{s.SharingKey, f}]
	for _, a := range list[d.past(s, f, list):] {
		p := d.of(a)
		if d.holds(a, service) || p == nil || !slices.Contains(pools, p) || !d.usable(p, a) {
			continue
		}
		if whom, kept := d.kept[a]; kept && whom != s.Key {
			continue
		}
		gets := b.gets
		*gets.of(f) = a
		if _, why := d.obstacle(a, service); why == "" && d.within(p, s, b.had, gets, 0) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// past returns how many of the addresses at the front of a shelf have a port of the
// Service in use. Ports only come to be used in a pass, so it never goes back: a
// thousand Services with one key and one port don't look at each other's addresses.
func (l *ledger) past(s *world.Service, f world.Family, list []netip.Addr) int {
	start := 0
	for _, p := range s.Ports {
		at := shelfPort{shelf{s.SharingKey, f}, p.Protocol, p.Port}
		n := l.full[at]
		for n < len(list) && slices.ContainsFunc(l.holders(list[n]), func(i int) bool { return listens(l.services[i], p) }) {
			n++
		}
		l.full[at] = n
		start = max(start, n)
	}
	return start
}

// alone reports whether nobody else in the Service's namespace has the address.
func (l *ledger) alone(a netip.Addr, s *world.Service) bool {
	if !l.taken(a) {
		return true
	}
	return !slices.ContainsFunc(l.holders(a), func(i int) bool {
		return l.services[i] != s && l.services[i].Key.Namespace == s.Key.Namespace
	})
}
