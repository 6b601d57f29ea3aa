// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// sharingGroup names the addresses of one family that were taken under a sharing key by the Services
// of a namespace or, without one, by those of the cluster (spec.sharing of the pool).
type sharingGroup struct {
	key       string
	family    world.Family
	namespace string
}

// sharedAddr is an address of a sharingGroup with its rank among all that were taken.
type sharedAddr struct {
	addr netip.Addr
	rank int
}

// groupPort is a port of the Services that share addresses of a sharingGroup.
type groupPort struct {
	sharingGroup
	protocol world.Protocol
	port     uint16
}

// clash says why two Services can't have one address, empty if they can: they need the
// same sharing key, different ports and, unless both have externalTrafficPolicy: Cluster,
// the same pods. scope has the rest of it: which namespaces they may be in.
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
		why := clash(l.services[service], l.services[other])
		if why == "" {
			why = l.scope(a, service, other)
		}
		if why != "" {
			return other, why
		}
	}
	return 0, ""
}

// scope says why the namespaces of two Services keep them from sharing an address; empty if
// they don't. Those that share it already go on to: an address once given is not taken away
// by an edit of the pool or by another release.
func (l *ledger) scope(a netip.Addr, service, other int) string {
	s, o, p := l.services[service], l.services[other], l.of(a)
	switch {
	case s.Key.Namespace == o.Key.Namespace, p != nil && p.SharedByCluster, l.hasAlready(service, a) && l.hasAlready(other, a):
		return ""
	case p == nil:
		return fmt.Sprintf("it is in no pool, so the Services of namespaces %q and %q can't share it", s.Key.Namespace, o.Key.Namespace)
	}
	return fmt.Sprintf("pool %q shares addresses within one namespace (spec.sharing: Namespace)", p.Name)
}

// hasAlready reports whether a Service had an address before this pass.
func (l *ledger) hasAlready(service int, a netip.Addr) bool {
	s := l.services[service]
	return slices.Contains(s.Assigned, a) || slices.Contains(l.held[s.Key], a) || slices.Contains(l.heldExternals(s), a)
}

// heldExternals are the addresses of spec.externalIPs that were the Service's own before.
func (l *ledger) heldExternals(s *world.Service) []netip.Addr {
	if newer, known := l.external[s.Key]; known {
		return newer
	}
	return s.HeldExternalIPs
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
	own, all := d.room(s, sharingGroup{s.SharingKey, f, s.Key.Namespace}), d.room(s, sharingGroup{s.SharingKey, f, ""})
	for len(own) > 0 || len(all) > 0 {
		next := &own
		if len(own) == 0 || len(all) > 0 && all[0].rank < own[0].rank {
			next = &all
		}
		a := (*next)[0].addr
		*next = (*next)[1:]
		p := d.of(a)
		if d.holds(a, service) || p == nil || !slices.Contains(pools, p) || !d.usable(p, a) {
			continue
		}
		if reservedFor, kept := d.kept[a]; kept && reservedFor != s.Key {
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

// room returns what is left of a sharingGroup without those addresses at its front that have a port
// of the Service in use. Ports only come to be used in a pass, so these never come back: a
// thousand Services with one key and one port don't look at each other's addresses.
func (l *ledger) room(s *world.Service, of sharingGroup) []sharedAddr {
	list, start := l.groups[of], 0
	for _, p := range s.Ports {
		at := groupPort{of, p.Protocol, p.Port}
		n := l.full[at]
		for n < len(list) && slices.ContainsFunc(l.holders(list[n].addr), func(i int) bool { return listens(l.services[i], p) }) {
			n++
		}
		l.full[at] = n
		start = max(start, n)
	}
	return list[start:]
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
