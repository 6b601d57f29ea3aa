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

// listedFacts are the addresses that Services of any type list in spec.externalIPs without having them.
type listedFacts struct {
	byService map[world.Key][]netip.Prefix
	// all is what snapshots have, nil after a change.
	all world.Listed
}

// set stores what a Service lists, and reports whether that has changed.
func (l *listedFacts) set(key world.Key, list []netip.Prefix) bool {
	if slices.Equal(l.byService[key], list) {
		return false
	}
	l.all = nil
	if len(list) == 0 {
		delete(l.byService, key)
		return true
	}
	if l.byService == nil {
		l.byService = map[world.Key][]netip.Prefix{}
	}
	l.byService[key] = list
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
