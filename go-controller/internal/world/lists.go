// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
)

const (
	// maxListedPerNamespace is the number of prefixes up to which all those of a namespace are listed. Beyond it, a cover
	// of them is, and the addresses that Services have: work does not grow further, and no Service hides what another one
	// lists.
	maxListedPerNamespace = 10_000
	// maxCover is the number of prefixes of a Service in the cover of its namespace.
	maxCover = 16
	// maxStoredPerNamespace is the number of prefixes of a namespace that are stored. Of Services that list further ones
	// only the cover is.
	maxStoredPerNamespace = 100_000
)

// Lists are what each Service lists without having it.
type Lists struct {
	namespaces map[string]*namespaceLists
	// exact are the numbers of Services that list an address itself.
	exact map[netip.Addr]int
}

// namespaceLists are the lists of a namespace. size is the number of their prefixes.
type namespaceLists struct {
	services map[string]list
	size     int
}

// list is what a Service lists, and a cover of it.
type list struct{ all, cover []netip.Prefix }

// Set sets what a Service lists: prefixes that CoverListed returned, which are sorted. It returns whether they have
// changed, and whether there are any that it did not list before.
func (l *Lists) Set(key Key, prefixes []netip.Prefix) (changed, grown bool) {
	ns := l.namespaces[key.Namespace]
	if ns == nil {
		if len(prefixes) == 0 {
			return false, false
		}
		ns = &namespaceLists{services: map[string]list{}}
	}
	was, next := ns.services[key.Name].all, list{all: prefixes}
	if others := ns.size - len(was); len(prefixes) > maxCover {
		next.cover = cover(prefixes, maxCover)
		if others+len(prefixes) > maxStoredPerNamespace {
			next.all = next.cover
		}
	} else {
		next.cover = prefixes
	}
	if slices.Equal(was, next.all) {
		return false, false
	}
	if l.namespaces == nil {
		l.namespaces, l.exact = map[string]*namespaceLists{}, map[netip.Addr]int{}
	}
	l.namespaces[key.Namespace] = ns
	l.count(without(was, next.all), -1)
	added := without(next.all, was)
	l.count(added, 1)
	ns.size += len(next.all) - len(was)
	if ns.services[key.Name] = next; len(next.all) == 0 {
		delete(ns.services, key.Name)
	}
	if len(ns.services) == 0 {
		delete(l.namespaces, key.Namespace)
	}
	return true, len(added) > 0
}

// count adds a number to those of addresses.
func (l *Lists) count(prefixes []netip.Prefix, n int) {
	for _, p := range prefixes {
		if a := p.Addr(); p.IsSingleIP() {
			if l.exact[a] += n; l.exact[a] == 0 {
				delete(l.exact, a)
			}
		}
	}
}

// without returns the prefixes that are not among others. Both are sorted.
func without(prefixes, others []netip.Prefix) (rest []netip.Prefix) {
	for _, p := range prefixes {
		for len(others) > 0 && others[0].Compare(p) < 0 {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != p {
			rest = append(rest, p)
		}
	}
	return rest
}

// Listed returns what all Services list. coarse reports whether those of a namespace list so much that a cover of it
// and the addresses that Services of ours have are returned.
func (l *Lists) Listed(services []*Service) (listed Listed, coarse bool) {
	for _, ns := range l.namespaces {
		if ns.size <= maxListedPerNamespace {
			for _, s := range ns.services {
				listed.Add(s.all)
			}
			continue
		}
		coarse = true
		var all []netip.Prefix
		for _, s := range ns.services {
			all = append(all, s.cover...)
		}
		listed.Add(CoverListed(all))
	}
	if !coarse {
		return listed, false
	}
	for _, s := range services {
		for _, addrs := range [][]netip.Addr{s.Assigned, s.Given, s.HeldExternalIPs} {
			for _, a := range addrs {
				if l.exact[a] > 0 {
					listed.Add([]netip.Prefix{netip.PrefixFrom(a, a.BitLen())})
				}
			}
		}
	}
	return listed, true
}
