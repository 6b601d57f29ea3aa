// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/netip"
	"time"

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

// listedPause is the minimum time between two decisions for what Services list: a tenant may change a list all the
// time, each such decision is a full one, and the lists of all Services are read for it.
const listedPause = time.Second

// listedFacts are the addresses that Services of any type list in spec.externalIPs without having them.
type listedFacts struct {
	lists world.Lists
	// all is what snapshots have, read from the lists at a time. coarse reports whether it also depends on which
	// addresses Services have.
	all    world.Listed
	read   time.Time
	coarse bool
	// changed reports whether lists have changed since then, grown whether one of them lists more.
	changed, grown bool
}

// set stores what a Service lists.
func (l *listedFacts) set(key world.Key, list []netip.Prefix) {
	changed, grown := l.lists.Set(key, list)
	l.changed, l.grown = l.changed || changed, l.grown || grown
}

// isDue reports whether the next decision must be a full one to know what Services list: an amendment of the last one
// may draw such an address. Where a list has an effect on flows, guards report that.
func (l *listedFacts) isDue(now time.Time) bool { return l.grown && now.Sub(l.read) >= listedPause }

// snapshot returns what Services list, which is not changed any more. It is nil in most clusters.
func (l *listedFacts) snapshot(now time.Time, services []*world.Service) world.Listed {
	if (l.changed || l.coarse) && now.Sub(l.read) >= listedPause {
		l.all, l.coarse = l.lists.Listed(services)
		l.read, l.changed, l.grown = now, false, false
	}
	return l.all
}
