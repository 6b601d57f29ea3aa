// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// Conflict is why frr-k8s would not merge an object with others.
type Conflict struct {
	// Object is the object that is refused, and With the one that it contradicts, empty if it is invalid by itself.
	Object, With string
	// Field is the path of the field in the object.
	Field, Message string
}

func (c *Conflict) String() string {
	if c.With == "" {
		return fmt.Sprintf("%s, %s: %s", c.Object, c.Field, c.Message)
	}
	return fmt.Sprintf("%s and %s, %s: %s", c.With, c.Object, c.Field, c.Message)
}

func conflict(object, with, field, format string, args ...any) *Conflict {
	return &Conflict{Object: object, With: with, Field: "spec.bgp." + field,
		Message: frrapi.Bounded(fmt.Sprintf(format, args...))}
}

// Merged are the FRRConfigurations of a node, merged by the rules of frr-k8s v0.0.25.
type Merged struct {
	passwords map[string]string
	// base is what this is added to, nil if nothing. It does not change any more.
	base     *Merged
	routers  map[string]*router
	profiles map[string]profile
	missing  *Conflict
}

type profile struct {
	frrapi.BFDProfile
	of string
}

// router is a BGP instance in a VRF. of are the objects that have set the fields. The neighbors of the base are not
// repeated.
type router struct {
	asn       uint32
	id        string
	of, idOf  string
	neighbors map[string]*neighbor
}

// neighbor is replaced, not changed.
type neighbor struct {
	*frrapi.ConvertedNeighbor
	of string
	// bfd is the BFD profile, and password the neighbor of an object whose Secret exists, if there is one.
	bfd         string
	password    *frrapi.ConvertedNeighbor
	preferences *preferences
	// own are the preferences in its object.
	own preferences
}

// NewMerged returns a node without objects. passwords are those in Secrets of frr-k8s; an empty one is no password.
func NewMerged(passwords map[string]string) *Merged {
	return &Merged{passwords: passwords, routers: map[string]*router{}, profiles: map[string]profile{}}
}

// Add merges an object. If frr-k8s' webhook would not, it returns why and changes nothing.
func (m *Merged) Add(name string, spec *frrapi.Spec) *Conflict {
	return m.AddConverted(name, frrapi.Convert(spec))
}

// AddConverted is Add for an object that is converted already.
func (m *Merged) AddConverted(name string, c *frrapi.Converted) *Conflict {
	next, conflict := m.with(name, c)
	if conflict == nil {
		m.take(next)
	}
	return conflict
}

// Missing returns the first neighbor whose Secret does not exist, nil if there is none. The webhook does not see
// Secrets, but frr-k8s then converts nothing, with whatever objects there are.
func (m *Merged) Missing() *Conflict {
	for ; m != nil; m = m.base {
		if m.missing != nil {
			return m.missing
		}
	}
	return nil
}

// with returns m and an object, without a change of m, or why they do not merge. Later changes of m change the result.
func (m *Merged) with(name string, c *frrapi.Converted) (*Merged, *Conflict) {
	if c.Invalid != nil {
		return nil, conflict(name, "", c.Invalid.Field, "%s", c.Invalid.Message)
	}
	next := NewMerged(m.passwords)
	next.base = m
	for _, p := range c.Profiles {
		was, ok := m.profile(p.Name)
		switch {
		case !ok:
			next.profiles[p.Name] = profile{p, name}
		case !equal(&was.BFDProfile, &p):
			return nil, &Conflict{Object: name, With: was.of, Field: "spec.bgp.bfdProfiles",
				Message: frrapi.Bounded("different values of BFD profile " + p.Name)}
		}
	}
	for i := range c.Routers {
		if conflict := next.addRouter(name, &c.Routers[i]); conflict != nil {
			return nil, conflict
		}
	}
	return next, nil
}

// take adds what with has returned.
func (m *Merged) take(next *Merged) {
	for name, p := range next.profiles {
		m.profiles[name] = p
	}
	for vrf, r := range next.routers {
		if is := m.routers[vrf]; is != nil {
			for id, n := range r.neighbors {
				n.preferences = n.preferences.shortened()
				is.neighbors[id] = n
			}
			r.neighbors = is.neighbors
		}
		m.routers[vrf] = r
	}
	if m.Missing() == nil {
		m.missing = next.missing
	}
}

func (m *Merged) router(vrf string) *router {
	for ; m != nil; m = m.base {
		if r := m.routers[vrf]; r != nil {
			return r
		}
	}
	return nil
}

func (m *Merged) neighbor(vrf, id string) *neighbor {
	for ; m != nil; m = m.base {
		if r := m.routers[vrf]; r != nil && r.neighbors[id] != nil {
			return r.neighbors[id]
		}
	}
	return nil
}

func (m *Merged) profile(name string) (profile, bool) {
	for ; m != nil; m = m.base {
		if p, ok := m.profiles[name]; ok {
			return p, true
		}
	}
	return profile{}, false
}

// equal reports whether two BFD profiles have the same values.
func equal(a, b *frrapi.BFDProfile) bool {
	same := func(a, b *uint32) bool { return a == b || a != nil && b != nil && *a == *b }
	flag := func(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(a.ReceiveInterval, b.ReceiveInterval) && same(a.TransmitInterval, b.TransmitInterval) &&
		same(a.DetectMultiplier, b.DetectMultiplier) && same(a.EchoInterval, b.EchoInterval) &&
		same(a.MinimumTTL, b.MinimumTTL) && flag(a.EchoMode, b.EchoMode) && flag(a.PassiveMode, b.PassiveMode)
}

// addRouter adds a router to what has no such router yet, apart from its base.
func (m *Merged) addRouter(name string, o *frrapi.ConvertedRouter) *Conflict {
	is := m.routers[o.VRF]
	if is == nil {
		is = &router{asn: o.ASN, id: o.ID, of: name, idOf: name}
		if was := m.base.router(o.VRF); was != nil {
			*is = *was
		}
		is.neighbors = make(map[string]*neighbor, len(o.Neighbors))
		m.routers[o.VRF] = is
	}
	switch {
	case is.asn != o.ASN:
		return conflict(name, is.of, "routers.asn", "%d and %d", is.asn, o.ASN)
	case is.id != "" && o.ID != "" && is.id != o.ID:
		return conflict(name, is.idOf, "routers.id", "%s and %s", is.id, o.ID)
	case is.id == "":
		is.id, is.idOf = o.ID, name
	}
	made := make([]neighbor, len(o.Neighbors))
	for i := range o.Neighbors {
		made[i] = neighbor{ConvertedNeighbor: &o.Neighbors[i], of: name}
		n, c := m.merge(name, o.VRF, &made[i])
		if c != nil {
			return c
		}
		is.neighbors[n.ID()] = n
	}
	return nil
}

// merge completes a neighbor of an object, merges it with what there is of it, and returns the result.
func (m *Merged) merge(name, vrf string, is *neighbor) (*neighbor, *Conflict) {
	o := is.ConvertedNeighbor
	if is.bfd = o.BFDProfile; len(o.LocalPref) > 0 {
		is.own = preferences{of: name, list: o.LocalPref}
		is.preferences = &is.own
	}
	if _, known := m.passwords[o.Secret.Name]; known || o.Secret.Name == "" {
		is.password = o
	} else if m.Missing() == nil {
		m.missing = conflict(name, "", "routers.neighbors.passwordSecret", "neighbor %s: Secret %s does not exist, is of "+
			"another type or has no key password", o.ID(), o.Secret.Name)
	}
	was := m.neighbor(vrf, o.ID())
	if was == nil {
		return is, nil
	}
	wrong := func(field, format string, args ...any) (*neighbor, *Conflict) {
		return nil, conflict(name, was.of, "routers.neighbors."+field, "neighbor "+o.ID()+": "+format, args...)
	}
	if a, b := fieldsOf(was.ConvertedNeighbor), fieldsOf(o); a != b {
		for _, f := range comparedFields() {
			if x, y := f.value(&a), f.value(&b); x != y {
				return wrong(f.name, "%v and %v", x, y)
			}
		}
	}
	if m.otherPassword(was, is) {
		return wrong("password", "different passwords")
	}
	if was.bfd != "" && is.bfd != "" && was.bfd != is.bfd {
		return wrong("bfdProfile", "%s and %s", was.bfd, is.bfd)
	}
	for _, p := range o.LocalPref {
		if of, ok := was.preferences.at(p.Prefix); ok && of.value != p.LocalPref {
			return nil, conflict(name, of.of, "routers.neighbors.toAdvertise.withLocalPref",
				"neighbor %s, prefix %s: %d and %d", o.ID(), p.Prefix, of.value, p.LocalPref)
		}
	}
	is.ConvertedNeighbor, is.of = was.ConvertedNeighbor, was.of
	is.bfd, is.password = cmp.Or(was.bfd, is.bfd), cmp.Or(was.password, is.password)
	is.preferences = was.preferences.with(is.preferences)
	return is, nil
}

// otherPassword reports whether two neighbors have different passwords. If a Secret is missing, they are compared as
// the webhook does, which takes a password in a Secret for none.
func (m *Merged) otherPassword(a, b *neighbor) bool {
	if a.password == nil || b.password == nil {
		return a.Password != b.Password
	}
	return m.passwordOf(a.password) != m.passwordOf(b.password)
}

func (m *Merged) passwordOf(n *frrapi.ConvertedNeighbor) string {
	if n.Secret.Name != "" {
		return m.passwords[n.Secret.Name]
	}
	return n.Password
}

// fields are what all objects must agree on for a neighbor, apart from its password, with FRR's defaults.
type fields struct {
	asn                      uint32 // 0 if dynamicASN is set
	dynamicASN, source       string
	port                     uint16
	multihop                 bool
	family                   frrapi.Family
	hold, keepalive, connect int
	localASN                 uint32
}

// FRR's defaults, which frr-k8s takes for unset fields.
const (
	defaultPort                                   = 179
	defaultHold, defaultKeepalive, defaultConnect = 180, 60, 60
)

func fieldsOf(n *frrapi.ConvertedNeighbor) fields {
	seconds := func(d *frrapi.Duration, otherwise int) int {
		if d == nil {
			return otherwise
		}
		return int(d.Seconds())
	}
	f := fields{asn: n.ASN, dynamicASN: n.DynamicASN, port: defaultPort, source: n.SourceAddress, multihop: n.EBGPMultiHop,
		family: n.Family, hold: seconds(n.HoldTime, defaultHold), keepalive: seconds(n.KeepaliveTime, defaultKeepalive),
		connect: seconds(n.ConnectTime, defaultConnect), localASN: n.LocalASN}
	if n.Port != nil {
		f.port = *n.Port
	}
	if n.DynamicASN != "" {
		f.asn = 0
	}
	return f
}

// comparedField is one of fields, by its name in the API.
type comparedField struct {
	name  string
	value func(*fields) any
}

func comparedFields() []comparedField {
	return []comparedField{
		{"asn", func(f *fields) any { return cmp.Or(f.dynamicASN, fmt.Sprint(f.asn)) }},
		{"port", func(f *fields) any { return f.port }},
		{"sourceaddress", func(f *fields) any { return f.source }},
		{"ebgpMultiHop", func(f *fields) any { return f.multihop }},
		{"dualStackAddressFamily", func(f *fields) any { return f.family }},
		{"holdTime", func(f *fields) any { return f.hold }},
		{"keepaliveTime", func(f *fields) any { return f.keepalive }},
		{"connectTime", func(f *fields) any { return f.connect }},
		{"localASN", func(f *fields) any { return f.localASN }},
	}
}
