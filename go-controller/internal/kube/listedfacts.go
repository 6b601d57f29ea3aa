// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// keepListing returns what keepService does, with the addresses that a Service lists which is not stored as it is.
func (f *Facts) keepListing(s *corev1.Service) *corev1.Service {
	kept := f.keepService(s)
	if kept != s {
		kept.Spec.ExternalIPs = convert.KeepExternalIPs(s)
	}
	return kept
}

// maxListedPerNamespace limits the prefixes of the Services of one namespace: all are read again for the snapshot after
// a change of any. Services beyond it count as if they listed nothing, until they change.
const maxListedPerNamespace = 10_000

// listedFacts are the addresses that Services of any type list in spec.externalIPs without having them.
type listedFacts struct {
	byService map[world.Key][]netip.Prefix
	// prefixes are the numbers of prefixes by namespace.
	prefixes map[string]int
	// all is what snapshots have, nil after a change.
	all world.Listed
}

// set stores what a Service lists, and reports whether that has changed.
func (l *listedFacts) set(key world.Key, list []netip.Prefix) bool {
	was := l.byService[key]
	others := l.prefixes[key.Namespace] - len(was)
	if others+len(list) > maxListedPerNamespace {
		list = nil
	}
	if slices.Equal(was, list) {
		return false
	}
	l.all = nil
	if l.byService == nil {
		l.byService, l.prefixes = map[world.Key][]netip.Prefix{}, map[string]int{}
	}
	l.byService[key], l.prefixes[key.Namespace] = list, others+len(list)
	if len(list) == 0 {
		delete(l.byService, key)
	}
	if l.prefixes[key.Namespace] == 0 {
		delete(l.prefixes, key.Namespace)
	}
	return true
}

// snapshot returns the addresses of all Services, which are not changed any more. It is nil in most clusters.
func (l *listedFacts) snapshot() world.Listed {
	if l.all == nil {
		for _, list := range l.byService {
			l.all.Add(list)
		}
	}
	return l.all
}
