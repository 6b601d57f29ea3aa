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
// same sharing key, different ports and, unless both have externalTrafficPolicy: Cluster, the same pods.
// namespaceConflict checks their namespaces.
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
func (st *state) holders(a netip.Addr) []int {
	first, taken := st.holder[a]
	if !taken {
		return nil
	}
	return append([]int{first}, st.sharers[a]...)
}

func (st *state) holds(a netip.Addr, service int) bool {
	first, taken := st.holder[a]
	return taken && (first == service || slices.Contains(st.sharers[a], service))
}

// conflictingHolder returns the first holder of an address that the Service can't share it with, and why. why is empty
// if there is none.
func (st *state) conflictingHolder(a netip.Addr, service int) (other int, why string) {
	if !st.taken(a) {
		return 0, ""
	}
	for _, other := range st.holders(a) {
		if other == service {
			continue
		}
		why := sharingConflict(st.services[service], st.services[other])
		if why == "" {
			why = st.namespaceConflict(a, service, other)
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
func (st *state) namespaceConflict(a netip.Addr, service, other int) string {
	s, o, p := st.services[service], st.services[other], st.poolOf(a)
	switch {
	case s.Key.Namespace == o.Key.Namespace, p != nil && p.SharedByCluster,
		st.hasAlready(service, a) && st.hasAlready(other, a):
		return ""
	case p == nil:
		return fmt.Sprintf("it is in no pool, so the Services of namespaces %q and %q can't share it", s.Key.Namespace,
			o.Key.Namespace)
	}
	return fmt.Sprintf("pool %q shares addresses within one namespace (spec.sharing: Namespace)", p.Name)
}

// hasAlready reports whether a Service had an address before this pass.
func (st *state) hasAlready(service int, a netip.Addr) bool {
	s := st.services[service]
	return slices.Contains(s.Assigned, a) || slices.Contains(st.held[s.Key], a) || slices.Contains(st.heldExternals(s), a)
}

// heldExternals returns the addresses of spec.externalIPs that belonged to the Service before.
func (st *state) heldExternals(s *world.Service) []netip.Addr {
	if newer, known := st.external[s.Key]; known {
		return newer
	}
	return s.HeldExternalIPs
}

// notShared returns the suffix of a message about an address of another Service: why it is not shared. It is empty
// unless the Service wants to share.
func notShared(s *world.Service, why string) string {
	if s.SharingKey == "" {
		return ""
	}
	return "; it is not shared: " + why
}

// share fills gets with addresses that the Service can share, and returns the families that are still missing.
func (al *allocator) share(service int, had perFamily, gets *perFamily, pools []*pool,
	missing []world.Family) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		a, ok := al.shared(service, f, pools, allocationRequest{al.services[service], had, *gets})
		if ok {
			*gets.of(f) = a
		}
		return ok
	})
}

// shared returns an address of other Services that a Service can share: the first one taken among those of the pools.
func (al *allocator) shared(service int, f world.Family, pools []*pool, r allocationRequest) (netip.Addr, bool) {
	s := r.service
	if s.SharingKey == "" {
		return netip.Addr{}, false
	}
	own, all := al.shareable(s, sharingGroup{s.SharingKey, f, s.Key.Namespace}),
		al.shareable(s, sharingGroup{s.SharingKey, f, ""})
	for len(own) > 0 || len(all) > 0 {
		next := &own
		if len(own) == 0 || len(all) > 0 && all[0].rank < own[0].rank {
			next = &all
		}
		a := (*next)[0].addr
		*next = (*next)[1:]
		p := al.poolOf(a)
		if al.holds(a, service) || p == nil || !slices.Contains(pools, p) || !al.usable(p, a) {
			continue
		}
		if reservedFor, kept := al.reservations[a]; kept && reservedFor != s.Key {
			continue
		}
		gets := r.gets
		*gets.of(f) = a
		if _, why := al.conflictingHolder(a, service); why == "" && al.withinQuota(p, s, r.had, gets, 0) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// shareable returns a sharingGroup without the addresses at its front that have a port of the Service in use. Within a
// pass ports are only added, so these addresses never become usable again: a thousand Services with one key and one
// port do not examine each other's addresses.
func (st *state) shareable(s *world.Service, of sharingGroup) []sharedAddr {
	list, start := st.groups[of], 0
	for _, p := range s.Ports {
		at := groupPort{of, p.Protocol, p.Port}
		n := st.skipped[at]
		for n < len(list) && slices.ContainsFunc(st.holders(list[n].addr), func(i int) bool {
			return hasPort(st.services[i], p)
		}) {
			n++
		}
		st.skipped[at] = n
		start = max(start, n)
	}
	return list[start:]
}

// isSoleInNamespace reports whether no other Service in the namespace has the address.
func (st *state) isSoleInNamespace(a netip.Addr, s *world.Service) bool {
	if !st.taken(a) {
		return true
	}
	return !slices.ContainsFunc(st.holders(a), func(i int) bool {
		return st.services[i] != s && st.services[i].Key.Namespace == s.Key.Namespace
	})
}
