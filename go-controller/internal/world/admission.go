// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
	"time"
)

// Admission says which Services a pool serves, and when it is their turn to ask it.
type Admission struct {
	// Priority orders the pools that serve a Service: the lowest number first, from 1;
	// 0 comes last.
	Priority int
	// AnyNamespace admits all of them. If it is not set, Namespaces has the names of those
	// admitted, sorted, selectors resolved by the reader.
	AnyNamespace bool
	Namespaces   []string
	// Services match the labels of those admitted; one match is enough. Empty admits all.
	Services []Selector
}

// AdmitsNamespace reports whether Services of a namespace may have an address.
func (a *Admission) AdmitsNamespace(name string) bool {
	_, found := slices.BinarySearch(a.Namespaces, name)
	return a.AnyNamespace || found
}

// AdmitsLabels reports whether a Service with these labels may have an address.
func (a *Admission) AdmitsLabels(labels map[string]string) bool {
	return len(a.Services) == 0 || slices.ContainsFunc(a.Services, func(s Selector) bool { return s.Matches(labels) })
}

// Reservation keeps addresses of a pool for a Service, also while it does not exist.
type Reservation struct {
	Service Key
	Addrs   []netip.Addr
}

// Lease is an address with a Service that has it or had it last.
type Lease struct {
	Addr    netip.Addr
	Service Key
	// Released is when the Service was seen without the address, rounded up to a second;
	// the zero Time while it has it.
	Released time.Time
}

// Selector is a label selector: all of its requirements have to be met.
type Selector []Requirement

// Requirement is what one label has to be like. Without Values it is about the presence
// of the label, with them about its value. Not turns it round: a label that is absent has
// none of the values.
type Requirement struct {
	Key    string
	Values []string
	Not    bool
}

// Matches reports whether labels meet all the requirements.
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
