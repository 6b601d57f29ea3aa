// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"fmt"
	"maps"
	"net/netip"

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

// Merged are the FRRConfigurations of a node, merged by the rules of frr-k8s v0.0.25.
type Merged struct {
	passwords map[string]string
	routers   map[string]*router
	profiles  map[string]profile
}

type profile struct {
	frrapi.BFDProfile
	of string
}

// router is a BGP instance in a VRF. of are the objects that have set the fields.
type router struct {
	asn       uint32
	id        string
	of, idOf  string
	neighbors map[string]*neighbor
}

type neighbor struct {
	frrapi.Session
	of, bfdOf string
	password  string
	family    family
	localPref map[string]preference
}

type preference struct {
	value uint32
	of    string
}

// NewMerged returns a node without objects. passwords are those in Secrets of frr-k8s.
func NewMerged(passwords map[string]string) *Merged {
	return &Merged{passwords: passwords, routers: map[string]*router{}, profiles: map[string]profile{}}
}

// Add merges an object. If frr-k8s would not, it returns why and changes nothing.
func (m *Merged) Add(name string, spec *frrapi.Spec) *Conflict {
	r := &reader{name: name, passwords: m.passwords}
	if c := r.read(spec); c != nil {
		return c
	}
	next := m.clone()
	for _, p := range r.profiles {
		if next.otherProfile(p) {
			return &Conflict{Object: name, With: next.profiles[p.Name].of, Field: "spec.bgp.bfdProfiles",
				Message: fmt.Sprintf("different values of BFD profile %s", p.Name)}
		} else if _, ok := next.profiles[p.Name]; !ok {
			next.profiles[p.Name] = profile{p, name}
		}
	}
	for _, o := range r.routers {
		if c := next.addRouter(name, o); c != nil {
			return c
		}
	}
	*m = *next
	return nil
}

// otherProfile reports whether there is a BFD profile of the same name with other values.
func (m *Merged) otherProfile(p frrapi.BFDProfile) bool {
	was, ok := m.profiles[p.Name]
	p = completed(p)
	return ok && !frrapi.Equal(&was.BFDProfile, &p)
}

// completed returns a BFD profile with the modes that frr-k8s takes for unset ones.
func completed(p frrapi.BFDProfile) frrapi.BFDProfile {
	no := false
	for _, b := range []**bool{&p.EchoMode, &p.PassiveMode} {
		if *b == nil {
			*b = &no
		}
	}
	return p
}

// clone copies what Add changes in place: neighbors are replaced, not changed.
func (m *Merged) clone() *Merged {
	next := &Merged{passwords: m.passwords, routers: make(map[string]*router, len(m.routers)),
		profiles: maps.Clone(m.profiles)}
	for vrf, r := range m.routers {
		of := *r
		of.neighbors = maps.Clone(r.neighbors)
		next.routers[vrf] = &of
	}
	return next
}

func (m *Merged) addRouter(name string, o *readRouter) *Conflict {
	is := m.routers[o.VRF]
	if is == nil {
		is = &router{asn: o.ASN, id: o.ID, of: name, idOf: name, neighbors: map[string]*neighbor{}}
		m.routers[o.VRF] = is
	}
	conflict := func(with, field, format string, args ...any) *Conflict {
		return &Conflict{Object: name, With: with, Field: "spec.bgp.routers." + field, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case is.asn != o.ASN:
		return conflict(is.of, "asn", "%d and %d", is.asn, o.ASN)
	case is.id != "" && o.ID != "" && is.id != o.ID:
		return conflict(is.idOf, "id", "%s and %s", is.id, o.ID)
	case is.id == "":
		is.id, is.idOf = o.ID, name
	}
	for _, n := range o.neighbors {
		was := is.neighbors[n.ID()]
		if was == nil {
			is.neighbors[n.ID()] = n
			continue
		}
		merged, c := was.merge(name, n)
		if c != nil {
			return c
		}
		is.neighbors[n.ID()] = merged
	}
	return nil
}

// merge returns n with what o adds to it.
func (n *neighbor) merge(name string, o *neighbor) (*neighbor, *Conflict) {
	conflict := func(field, format string, args ...any) (*neighbor, *Conflict) {
		return nil, &Conflict{Object: name, With: n.of, Field: "spec.bgp.routers.neighbors." + field,
			Message: "neighbor " + n.ID() + ": " + fmt.Sprintf(format, args...)}
	}
	for _, f := range comparedFields() {
		if was, is := f.value(n), f.value(o); was != is {
			if f.secret {
				return conflict(f.name, "different passwords")
			}
			return conflict(f.name, "%v and %v", was, is)
		}
	}
	if n.BFDProfile != "" && o.BFDProfile != "" && n.BFDProfile != o.BFDProfile {
		return conflict("bfdProfile", "%s and %s", n.BFDProfile, o.BFDProfile)
	}
	out := *n
	out.localPref = maps.Clone(n.localPref)
	if out.BFDProfile == "" {
		out.BFDProfile, out.bfdOf = o.BFDProfile, name
	}
	for prefix, p := range o.localPref {
		if was, ok := out.localPref[prefix]; ok && was.value != p.value {
			return nil, &Conflict{Object: name, With: was.of, Field: "spec.bgp.routers.neighbors.toAdvertise.withLocalPref",
				Message: fmt.Sprintf("neighbor %s, prefix %s: %d and %d", n.ID(), prefix, was.value, p.value)}
		}
		if out.localPref == nil {
			out.localPref = map[string]preference{}
		}
		out.localPref[prefix] = p
	}
	return &out, nil
}

// comparedField is a field of a neighbor in which all objects must agree.
type comparedField struct {
	name   string
	value  func(*neighbor) any
	secret bool
}

// FRR's defaults, which frr-k8s takes for unset fields.
const (
	defaultPort                                   = 179
	defaultHold, defaultKeepalive, defaultConnect = 180, 60, 60
)

func comparedFields() []comparedField {
	seconds := func(d *frrapi.Duration, otherwise int) any {
		if d == nil {
			return otherwise
		}
		return int(d.Seconds())
	}
	return []comparedField{
		{name: "asn", value: func(n *neighbor) any { return asn(&n.Session) }},
		{name: "port", value: func(n *neighbor) any {
			if n.Port == nil {
				return uint16(defaultPort)
			}
			return *n.Port
		}},
		{name: "sourceaddress", value: func(n *neighbor) any { return n.SourceAddress }},
		{name: "password", value: func(n *neighbor) any { return n.password }, secret: true},
		{name: "ebgpMultiHop", value: func(n *neighbor) any { return n.EBGPMultiHop }},
		{name: "dualStackAddressFamily", value: func(n *neighbor) any { return n.family }},
		{name: "holdTime", value: func(n *neighbor) any { return seconds(n.HoldTime, defaultHold) }},
		{name: "keepaliveTime", value: func(n *neighbor) any { return seconds(n.KeepaliveTime, defaultKeepalive) }},
		{name: "connectTime", value: func(n *neighbor) any { return seconds(n.ConnectTime, defaultConnect) }},
		{name: "localASN", value: func(n *neighbor) any { return n.LocalASN }},
	}
}

func asn(s *frrapi.Session) string {
	if s.DynamicASN != "" {
		return s.DynamicASN
	}
	return fmt.Sprint(s.ASN)
}

// family is a family of routes that a neighbor has.
type family string

const (
	ipv4 family = "ipv4"
	ipv6 family = "ipv6"
	dual family = "dual"
)

// familyOf returns the families that a neighbor has; false if its address is invalid.
func familyOf(s *frrapi.Session) (family, bool) {
	a, err := netip.ParseAddr(s.Address)
	switch {
	case s.Address != "" && (err != nil || a.Zone() != ""):
		return "", false
	case s.Interface != "" || s.DualStack:
		return dual, true
	case a.Unmap().Is4():
		return ipv4, true
	}
	return ipv6, true
}

// has reports whether routes of a prefix are sent.
func (f family) has(p netip.Prefix) bool { return f == dual || (f == ipv4) == p.Addr().Unmap().Is4() }
