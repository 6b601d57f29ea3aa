// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// sharingGroup identifies the addresses of one family that the Services of a namespace have under a sharing key.
// Without a namespace, it is the Services of the cluster (spec.sharing of the pool).
type sharingGroup struct {
	key       string
	family    world.Family
	namespace string
}

// sharedAddr is an address of a sharingGroup with its rank among all addresses taken.
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

// sharingConflict returns why two Services can't have the same address, or an empty string if they can. They need the
// same sharing key, different ports and, unless both have externalTrafficPolicy: Cluster, the same pods. scope checks
// their namespaces.
func sharingConflict(a, b *world.Service) string {
	if a.SharingKey == "" || a.SharingKey != b.SharingKey {
		return "the Services have different keys in allow-shared-ip"
	}
	for _, p := range a.Ports {
		if hasPort(b, p) {
			return fmt.Sprintf("both Services use port %d/%s", p.Port, p.Protocol)
		}
	}
	if (a.LocalPolicy || b.LocalPolicy) && (len(a.Selector) == 0 || !maps.Equal(a.Selector, b.Selector)) {
		return "with spec.externalTrafficPolicy: Local both need the same spec.selector"
	}
	return ""
}

func hasPort(s *world.Service, p world.Port) bool {
	return slices.ContainsFunc(s.Ports, func(q world.Port) bool { return q.Protocol == p.Protocol && q.Port == p.Port })
}

// holders returns the Services that have an address.
func (l *state) holders(a netip.Addr) []int {
	first, taken := l.holder[a]
	if !taken {
		return nil
	}
	return append([]int{first}, l.sharers[a]...)
}

func (l *state) holds(a netip.Addr, service int) bool {
	first, taken := l.holder[a]
	return taken && (first == service || slices.Contains(l.sharers[a], service))
}

// conflictingHolder returns the first holder of an address that the Service can't share it with, and why. why is empty
// if there is none.
func (l *state) conflictingHolder(a netip.Addr, service int) (other int, why string) {
	if !l.taken(a) {
		return 0, ""
	}
	for _, other := range l.holders(a) {
		if other == service {
			continue
		}
		why := sharingConflict(l.services[service], l.services[other])
		if why == "" {
			why = l.namespaceConflict(a, service, other)
		}
		if why != "" {
			return other, why
		}
	}
	return 0, ""
}

// namespaceConflict returns why the namespaces of two Services keep them from sharing an address, or an empty string.
// Services that share the address already continue to share it: neither an edit of the pool nor another release takes
// an allocated address away.
func (l *state) namespaceConflict(a netip.Addr, service, other int) string {
	s, o, p := l.services[service], l.services[other], l.poolOf(a)
	switch {
	case s.Key.Namespace == o.Key.Namespace, p != nil && p.SharedByCluster,
		l.hasAlready(service, a) && l.hasAlready(other, a):
		return ""
	case p == nil:
		return fmt.Sprintf("it is in no pool, so the Services of namespaces %q and %q can't share it", s.Key.Namespace,
			o.Key.Namespace)
	}
	return fmt.Sprintf("pool %q shares addresses within one namespace (spec.sharing: Namespace)", p.Name)
}

// hasAlready reports whether a Service had an address before this pass.
func (l *state) hasAlready(service int, a netip.Addr) bool {
	s := l.services[service]
	return slices.Contains(s.Assigned, a) || slices.Contains(l.held[s.Key], a) || slices.Contains(l.heldExternals(s), a)
}

// heldExternals returns the addresses of spec.externalIPs that belonged to the Service before.
func (l *state) heldExternals(s *world.Service) []netip.Addr {
	if newer, known := l.external[s.Key]; known {
		return newer
	}
	return s.HeldExternalIPs
}

// notShared returns the suffix of a message about an address of another Service that says why it is not shared. It is
// empty unless the Service wants to share.
func notShared(s *world.Service, why string) string {
	if s.SharingKey == "" {
		return ""
	}
	return "; it is not shared: " + why
}

// share fills gets with addresses that the Service can share, and returns the families that are still missing.
func (d *allocator) share(service int, had perFamily, gets *perFamily, pools []*pool,
	missing []world.Family) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		a, ok := d.shared(service, f, pools, allocationRequest{d.services[service], had, *gets})
		if ok {
			*gets.of(f) = a
		}
		return ok
	})
}

// shared returns an address of other Services that a Service can share: the first one taken among those of the pools.
func (d *allocator) shared(service int, f world.Family, pools []*pool, b allocationRequest) (netip.Addr, bool) {
	s := b.service
	if s.SharingKey == "" {
		return netip.Addr{}, false
	}
	own, all := d.shareable(s, sharingGroup{s.SharingKey, f, s.Key.Namespace}),
		d.shareable(s, sharingGroup{s.SharingKey, f, ""})
	for len(own) > 0 || len(all) > 0 {
		next := &own
		if len(own) == 0 || len(all) > 0 && all[0].rank < own[0].rank {
			next = &all
		}
		a := (*next)[0].addr
		*next = (*next)[1:]
		p := d.poolOf(a)
		if d.holds(a, service) || p == nil || !slices.Contains(pools, p) || !d.usable(p, a) {
			continue
		}
		if reservedFor, kept := d.reservations[a]; kept && reservedFor != s.Key {
			continue
		}
		gets := b.gets
		*gets.of(f) = a
		if _, why := d.conflictingHolder(a, service); why == "" && d.withinQuota(p, s, b.had, gets, 0) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// shareable returns a sharingGroup without the addresses at its front that have a port of the Service in use. Within a
// pass ports are only added, so these addresses never become usable again: a thousand Services with one key and one
// port do not examine each other's addresses.
func (l *state) shareable(s *world.Service, of sharingGroup) []sharedAddr {
	list, start := l.groups[of], 0
	for _, p := range s.Ports {
		at := groupPort{of, p.Protocol, p.Port}
		n := l.skipped[at]
		for n < len(list) && slices.ContainsFunc(l.holders(list[n].addr), func(i int) bool {
			return hasPort(l.services[i], p)
		}) {
			n++
		}
		l.skipped[at] = n
		start = max(start, n)
	}
	return list[start:]
}

// isSoleInNamespace reports whether no other Service in the namespace has the address.
func (l *state) isSoleInNamespace(a netip.Addr, s *world.Service) bool {
	if !l.taken(a) {
		return true
	}
	return !slices.ContainsFunc(l.holders(a), func(i int) bool {
		return l.services[i] != s && l.services[i].Key.Namespace == s.Key.Namespace
	})
}
