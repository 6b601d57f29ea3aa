// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
	"time"
)

// Admission restricts the Services that a pool serves, and orders the pool among others.
type Admission struct {
	// Priority orders the pools that serve a Service: the lowest number first, from 1. 0 comes last.
	Priority int
	// AnyNamespace admits all namespaces. If it is not set, Namespaces are the names of the admitted ones, sorted. The
	// reader of the API object has resolved its namespace selectors.
	AnyNamespace bool
	Namespaces   []string
	// Services match the labels of the admitted Services. One match is enough. Empty admits all.
	Services []Selector
}

// AdmitsNamespace reports whether Services in namespace name may have an address.
func (a *Admission) AdmitsNamespace(name string) bool {
	_, found := slices.BinarySearch(a.Namespaces, name)
	return a.AnyNamespace || found
}

// AdmitsLabels reports whether a Service with these labels may have an address.
func (a *Admission) AdmitsLabels(labels map[string]string) bool {
	return Selects(a.Services, labels)
}

// Reservation reserves addresses of a pool for a Service, even while the Service does not exist.
type Reservation struct {
	Service Key
	Addrs   []netip.Addr
}

// Lease records the Service that has an address or had it last.
type Lease struct {
	Addr    netip.Addr
	Service Key
	// Released is when the Service was first observed without the address, rounded up to a second. It is the zero Time
	// while the Service has the address.
	Released time.Time
}

// Selector is a label selector. All of its requirements must be met.
type Selector []Requirement

// Selects reports whether one of the selectors matches labels. No selector at all selects everything.
func Selects(selectors []Selector, labels map[string]string) bool {
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s Selector) bool { return s.Matches(labels) })
}

// Requirement is a requirement on one label. Without Values it tests the presence of the label, with Values the label's
// value. Not negates it: an absent label has none of the values.
type Requirement struct {
	Key    string
	Values []string
	Not    bool
}

// Matches reports whether labels meet all requirements.
func (s Selector) Matches(labels map[string]string) bool {
	for _, r := range s {
		value, has := labels[r.Key]
		met := has && (len(r.Values) == 0 || slices.Contains(r.Values, value))
		if met == r.Not {
			return false
		}
	}
	return true
}
