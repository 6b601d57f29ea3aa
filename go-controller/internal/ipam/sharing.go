// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"fmt"
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

func (st *state) holds(a netip.Addr, service int) bool {
	if sh := st.sharers[a]; sh != nil {
		return sh.has[service]
	}
	first, taken := st.holder[a]
	return taken && first == service
}

// usesPort reports whether a Service that has an address uses a port.
func (st *state) usesPort(a netip.Addr, p world.Port) bool {
	_, used := st.firstUser(st.sharersOf(a), portID{p.Protocol, p.Port})
	return used
}

// namespaceConflict returns why the namespaces of two Services keep them from sharing an address, or an empty string.
// Services that share the address already continue to share it: neither an edit of the pool nor another release takes
// an allocated address away. Once the address is cleared from one status only, that Service has no right to share it:
// it may have given the address up, and the other one may have got it since.
func (st *state) namespaceConflict(a netip.Addr, service, other int) string {
	s, o, p := st.services[service], st.services[other], st.poolOf(a)
	switch {
	case s.Key.Namespace == o.Key.Namespace, p != nil && p.SharedByCluster,
		st.hasAlready(service, a) && st.hasAlready(other, a),
		st.wasCleared(service, a) && st.wasCleared(other, a):
		return ""
	case p == nil:
		return "it is in no pool, so Services of different namespaces can't share it"
	}
	return fmt.Sprintf("pool %q shares addresses within one namespace (spec.sharing: Namespace)", p.Name)
}

// hasAlready reports whether a Service had an address before this pass, and no other client has cleared it.
func (st *state) hasAlready(service int, a netip.Addr) bool {
	s := st.services[service]
	return slices.Contains(s.Assigned, a) || slices.Contains(st.granted[s.Key], a) ||
		st.heldExternals(service)[a]
}

// wasCleared reports whether a Service had an address until another client cleared it.
func (st *state) wasCleared(service int, a netip.Addr) bool {
	return slices.Contains(st.services[service].Shown(), a) && !st.hasAlready(service, a)
}

// heldExternals returns the addresses of spec.externalIPs that belonged to a Service before, according to decisions of
// ours or to its status: no other Service gets one as long as the status shows it.
func (st *state) heldExternals(service int) map[netip.Addr]bool {
	s := st.services[service]
	granted := st.external[s.Key]
	if len(granted)+len(s.HeldExternalIPs) == 0 {
		return nil
	}
	set := st.externalSets[service]
	if set == nil {
		set = make(map[netip.Addr]bool, len(s.HeldExternalIPs)+len(granted))
		for _, list := range [][]netip.Addr{s.HeldExternalIPs, granted} {
			for _, a := range list {
				set[a] = true
			}
		}
		st.externalSets[service] = set
	}
	return set
}

// notShared returns the suffix of a message about an address of another Service: why it is not shared. It is empty
// unless the Service wants to share. If their namespaces do not allow it, the message says only that: otherwise tenants
// could find out keys and ports of others by guessing.
func (st *state) notShared(a netip.Addr, service, other int, why string) string {
	if st.services[service].SharingKey == "" {
		return ""
	}
	return "; it is not shared: " + cmp.Or(st.namespaceConflict(a, service, other), why)
}

// nameFor returns how a message on a Service names another one. A user who may read the Service need not know the
// Services of other namespaces, and the message stays the same if another one of these gets the address.
func nameFor(service, other world.Key) string {
	if service.Namespace != other.Namespace {
		return "a Service of another namespace"
	}
	return "Service " + other.String()
}

// share fills gets with addresses that the Service can share, and returns the families that are still missing.
func (al *allocator) share(service int, had perFamily, gets *perFamily, pools []*pool,
	missing []world.Family) []world.Family {
	return slices.DeleteFunc(missing, func(f world.Family) bool {
		a, ok := al.shared(f, pools, allocationRequest{service, had, *gets})
		if ok {
			*gets.of(f) = a
		}
		return ok
	})
}

const (
	// maxShareable is the number of addresses with its key that a Service examines. One that can share none of them gets
	// an address of its own.
	maxShareable = 100
	// maxComparedPorts is the number of ports compared for a Service after which it examines no further address: at each
	// address the fewer of its own and of those in use.
	maxComparedPorts = 20_000
)

// shared returns an address of other Services that a Service can share: the first one taken among those of the pools.
func (al *allocator) shared(f world.Family, pools []*pool, r allocationRequest) (netip.Addr, bool) {
	service, s := r.service, al.services[r.service]
	if s.SharingKey == "" || len(s.Ports) > MaxSharedPorts {
		return netip.Addr{}, false
	}
	own, all := al.shareable(s, sharingGroup{s.SharingKey, f, s.Key.Namespace}),
		al.shareable(s, sharingGroup{s.SharingKey, f, ""})
	compared := 0
	for range maxShareable {
		if len(own)+len(all) == 0 || compared > maxComparedPorts {
			break
		}
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
		can, ports := al.canShare(a, service)
		if can && al.withinQuota(p, service, r.had, gets, 0) {
			return a, true
		}
		compared += ports
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
		for n < len(list) && st.usesPort(list[n].addr, p) {
			n++
		}
		st.skipped[at] = n
		start = max(start, n)
	}
	return list[start:]
}
