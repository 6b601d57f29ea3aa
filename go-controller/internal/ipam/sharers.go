// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// MaxSharedPorts is the maximum number of ports of all Services together that share an address.
const MaxSharedPorts = 5000

// sharers are the Services that have one address, with an index of what keeps another Service from sharing it. To
// compare one more Service with all of them takes as long as that Service has ports: tenants decide how many Services
// share an address, and how many ports they have.
//
// Services are indexes in state.services. Positions are indexes in holders.
type sharers struct {
	holders []int // in the order in which they took the address
	has     map[int]bool
	// ports are the positions of the first holder that uses a port, and conflicting those of the others: there are none,
	// unless holders are in conflict. Both are nil while there is one holder, see portsOf.
	ports       map[portID]int
	conflicting map[portID][]int
	portCount   int
	// keys and namespaces are those of the holders. joined are the namespaces of those for which hasAlready is false, and
	// uncleared of those for which wasCleared is.
	keys, namespaces, joined, uncleared distinction
	// selectors are those of the first holders, as many as hashed, and local are those of them with
	// externalTrafficPolicy: Local; see hashSelectors. firstLocal is the position of the first of all holders with that
	// policy, or -1.
	selectors, local   distinction
	hashed, firstLocal int
}

type portID struct {
	protocol world.Protocol
	port     uint16
}

// distinction is the first value in a sequence, and where the first value that differs from it is. -1 stands for
// nowhere.
type distinction struct {
	value        string
	first, other int
}

func newDistinction() distinction { return distinction{first: -1, other: -1} }

func (d *distinction) add(value string, at int) {
	switch {
	case d.first < 0:
		d.value, d.first = value, at
	case d.other < 0 && value != d.value:
		d.other = at
	}
}

// otherThan returns where the first value is that differs from the given one, or -1.
func (d *distinction) otherThan(value string) int {
	if d.first >= 0 && d.value != value {
		return d.first
	}
	return d.other
}

// holders returns the Services that have an address that is taken, by their indices in services.
func (st *state) holders(a netip.Addr) []int {
	if sh := st.sharers[a]; sh != nil {
		return sh.holders
	}
	return []int{st.holder[a]}
}

// sharersOf returns the sharers of an address that is taken. There is no index of an address until two Services with
// the same key are compared.
func (st *state) sharersOf(a netip.Addr) *sharers {
	sh := st.sharers[a]
	if sh == nil {
		sh = &sharers{has: map[int]bool{}, keys: newDistinction(), namespaces: newDistinction(), joined: newDistinction(),
			uncleared: newDistinction(), selectors: newDistinction(), local: newDistinction(), firstLocal: -1}
		st.sharers[a] = sh
		st.addSharer(sh, a, st.holder[a])
	}
	return sh
}

func (st *state) addSharer(sh *sharers, a netip.Addr, service int) {
	s, at := st.services[service], len(sh.holders)
	sh.holders = append(sh.holders, service)
	sh.has[service] = true
	switch at {
	case 0:
	case 1:
		sh.ports, sh.conflicting = map[portID]int{}, map[portID][]int{}
		sh.addPorts(st.services[sh.holders[0]], 0)
		fallthrough
	default:
		sh.addPorts(s, at)
	}
	sh.portCount += len(s.Ports)
	sh.keys.add(s.SharingKey, at)
	sh.namespaces.add(s.Key.Namespace, at)
	if s.LocalPolicy && sh.firstLocal < 0 {
		sh.firstLocal = at
	}
	if !st.hasAlready(service, a) {
		sh.joined.add(s.Key.Namespace, at)
	}
	if !st.wasCleared(service, a) {
		sh.uncleared.add(s.Key.Namespace, at)
	}
}

func (sh *sharers) addPorts(s *world.Service, at int) {
	for _, p := range s.Ports {
		id := portID{p.Protocol, p.Port}
		if _, used := sh.ports[id]; !used {
			sh.ports[id] = at
		} else {
			sh.conflicting[id] = append(sh.conflicting[id], at)
		}
	}
}

// portsOf returns the ports of a Service. They are computed once: a Service may have thousands of them, and be compared
// for each of thousands of addresses.
func (st *state) portsOf(service int) map[portID]bool {
	ports := st.ports[service]
	if ports == nil {
		ports = make(map[portID]bool, len(st.services[service].Ports))
		for _, p := range st.services[service].Ports {
			ports[portID{p.Protocol, p.Port}] = true
		}
		st.ports[service] = ports
	}
	return ports
}

// firstUser returns the position of the first holder that uses a port.
func (st *state) firstUser(sh *sharers, id portID) (at int, used bool) {
	if sh.ports == nil {
		return 0, st.portsOf(sh.holders[0])[id]
	}
	at, used = sh.ports[id]
	return at, used
}

// hashSelectors adds the selectors of holders that were added since. It is called when they matter: a tenant can write
// a selector of a megabyte, and only externalTrafficPolicy: Local depends on it.
func (st *state) hashSelectors(sh *sharers) {
	for at := sh.hashed; at < len(sh.holders); at++ {
		selector := st.selector(sh.holders[at])
		sh.selectors.add(selector, at)
		if st.services[sh.holders[at]].LocalPolicy {
			sh.local.add(selector, at)
		}
	}
	sh.hashed = len(sh.holders)
}

// selector returns a short text that is equal for equal selectors only. It is computed once, because a Service is
// compared with the holders of many addresses.
func (st *state) selector(service int) string {
	text, known := st.selectors[service]
	if !known {
		s := st.services[service]
		hash := func() string { return hashOf(s.Selector) }
		if s.SelectorHash != nil {
			text = s.SelectorHash(hash)
		} else {
			text = hash()
		}
		st.selectors[service] = text
	}
	return text
}

func hashOf(selector map[string]string) string {
	hash := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(selector)) {
		fmt.Fprintf(hash, "%q=%q,", k, selector[k])
	}
	return string(hash.Sum(nil))
}

// conflictingHolder returns the first holder of an address that the Service can't share it with, and why. why is empty
// if there is none. Services that share an address need the same sharing key, different ports, at most MaxSharedPorts
// of them, and, unless all have externalTrafficPolicy: Cluster, the same pods. namespaceConflict is about their
// namespaces.
func (st *state) conflictingHolder(a netip.Addr, service int) (other int, why string) {
	first, taken := st.holder[a]
	switch {
	case !taken || first == service && st.sharers[a] == nil:
		return 0, ""
	case first != service && !sameKey(st.services[first], st.services[service]):
		return first, keysDiffer
	}
	sh := st.sharersOf(a)
	s, own := st.services[service], 0
	if sh.has[service] {
		own = len(s.Ports)
	}
	if at := st.firstConflict(sh, service, st.firstNamespaceConflict(sh, a, service)); at >= 0 {
		other = sh.holders[at]
		if why = st.conflict(sh, service, at); why == "" {
			why = st.namespaceConflict(a, service, other)
		}
		return other, why
	}
	n, at := sh.portCount-own+len(s.Ports), sh.another(service)
	if n <= MaxSharedPorts || at < 0 {
		return 0, ""
	}
	return sh.holders[at], fmt.Sprintf("the Services that share it would use %d ports, and the limit is %d", n,
		MaxSharedPorts)
}

// keysDiffer is why Services with different keys, or without one, do not share an address.
const keysDiffer = "the Services have different keys in allow-shared-ip"

func sameKey(a, b *world.Service) bool { return a.SharingKey != "" && a.SharingKey == b.SharingKey }

// another returns the position of the first holder other than a Service, or -1.
func (sh *sharers) another(service int) int {
	return slices.IndexFunc(sh.holders, func(i int) bool { return i != service })
}

// firstConflict returns the position of the first holder that a Service can't share the address with, or -1. namespace
// is that of the first one in a namespace with which it can't, or -1.
func (st *state) firstConflict(sh *sharers, service, namespace int) int {
	s, first := st.services[service], namespace
	found := func(at int) {
		if at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if s.SharingKey == "" {
		found(sh.another(service))
	}
	found(sh.keys.otherThan(s.SharingKey))
	for _, p := range s.Ports {
		id := portID{p.Protocol, p.Port}
		if at, used := st.firstUser(sh, id); used && sh.holders[at] != service {
			found(at)
		} else if others := sh.conflicting[id]; len(others) > 0 {
			found(others[0])
		}
	}
	found(st.firstSelectorConflict(sh, service))
	return first
}

// firstSelectorConflict returns the position of the first holder with which a Service can't share the address because
// they need the same pods (externalTrafficPolicy: Local), or -1.
func (st *state) firstSelectorConflict(sh *sharers, service int) int {
	s := st.services[service]
	switch {
	case !s.LocalPolicy && (sh.firstLocal < 0 || len(s.Selector) == 0):
		return sh.firstLocal
	case len(s.Selector) == 0:
		return sh.another(service)
	}
	st.hashSelectors(sh)
	if s.LocalPolicy {
		return sh.selectors.otherThan(st.selector(service))
	}
	return sh.local.otherThan(st.selector(service))
}

// canShare reports whether conflictingHolder finds none for a Service that does not have the address, which is taken.
// It does not look for the first of several: a Service that finds no address is compared with many in each pass.
// compared is the number of ports that this takes.
func (st *state) canShare(a netip.Addr, service int) (is bool, compared int) {
	sh, s := st.sharersOf(a), st.services[service]
	if sh.portCount+len(s.Ports) > MaxSharedPorts || sh.keys.otherThan(s.SharingKey) >= 0 ||
		st.firstNamespaceConflict(sh, a, service) >= 0 || st.firstSelectorConflict(sh, service) >= 0 {
		return false, 0
	}
	compared = min(sh.portCount, len(s.Ports))
	if sh.portCount > len(s.Ports) {
		return !slices.ContainsFunc(s.Ports, func(p world.Port) bool {
			_, used := st.firstUser(sh, portID{p.Protocol, p.Port})
			return used
		}), compared
	}
	own := st.portsOf(service)
	return !slices.ContainsFunc(sh.holders, func(holder int) bool {
		return slices.ContainsFunc(st.services[holder].Ports, func(p world.Port) bool {
			return own[portID{p.Protocol, p.Port}]
		})
	}), compared
}

// firstNamespaceConflict returns the position of the first holder for which namespaceConflict has a reason, or -1.
func (st *state) firstNamespaceConflict(sh *sharers, a netip.Addr, service int) int {
	namespace := st.services[service].Key.Namespace
	at := sh.namespaces.otherThan(namespace)
	if p := st.poolOf(a); at < 0 || p != nil && p.SharedByCluster {
		return -1
	}
	switch {
	case st.hasAlready(service, a):
		return sh.joined.otherThan(namespace)
	case st.wasCleared(service, a):
		return sh.uncleared.otherThan(namespace)
	}
	return at
}

// conflict returns why a Service can't share the address with the holder at a position, apart from their namespaces.
func (st *state) conflict(sh *sharers, service, at int) string {
	s, holder := st.services[service], st.services[sh.holders[at]]
	if !sameKey(s, holder) {
		return keysDiffer
	}
	for _, p := range s.Ports {
		id := portID{p.Protocol, p.Port}
		if first, used := st.firstUser(sh, id); used && first == at || slices.Contains(sh.conflicting[id], at) {
			return fmt.Sprintf("both Services use port %d/%s", p.Port, p.Protocol)
		}
	}
	if (s.LocalPolicy || holder.LocalPolicy) && (len(s.Selector) == 0 ||
		st.selector(service) != st.selector(sh.holders[at])) {
		return "with spec.externalTrafficPolicy: Local both need the same spec.selector"
	}
	return ""
}
