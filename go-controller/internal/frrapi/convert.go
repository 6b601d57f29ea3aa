// SPDX-License-Identifier: Apache-2.0

package frrapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Convert converts an object, and checks what frr-k8s demands of it by itself. It takes time in proportion to the size
// of the object.
func Convert(spec *Spec) *Converted {
	c := &converter{out: &Converted{}, profiles: map[string]bool{}, prefixes: map[string][]string{}}
	for _, p := range spec.BGP.BFDProfiles {
		if c.profiles[p.Name] {
			c.invalid("bfdProfiles", "%s is there twice", p.Name)
		}
		c.profiles[p.Name] = true
		c.out.Profiles = append(c.out.Profiles, p.Completed())
	}
	for i := range spec.BGP.Routers {
		c.prefixes[spec.BGP.Routers[i].VRF] = spec.BGP.Routers[i].Prefixes
	}
	for i := range spec.BGP.Routers {
		c.router(&spec.BGP.Routers[i])
	}
	slices.SortFunc(c.out.Prefixes, netip.Prefix.Compare)
	c.out.Prefixes = slices.Clip(slices.Compact(c.out.Prefixes))
	return c.out
}

// Completed returns a BFD profile with the modes that frr-k8s takes for unset ones.
func (p BFDProfile) Completed() BFDProfile {
	no := false
	for _, b := range []**bool{&p.EchoMode, &p.PassiveMode} {
		if *b == nil {
			*b = &no
		}
	}
	return p
}

// converter converts one object.
type converter struct {
	out      *Converted
	profiles map[string]bool
	prefixes map[string][]string // of routers, by VRF
}

// invalid records the first problem.
func (c *converter) invalid(field, format string, args ...any) {
	if c.out.Invalid == nil {
		c.out.Invalid = &Problem{field, Bounded(fmt.Sprintf(format, args...))}
	}
}

func (c *converter) router(o *Router) {
	is := ConvertedRouter{ASN: o.ASN, ID: o.ID, VRF: o.VRF}
	own := make(map[string]string, len(o.Prefixes)) // the prefixes that neighbors may receive, by themselves
	for _, text := range o.Prefixes {
		p, ok := ParsePrefix(text)
		if !ok {
			c.invalid("routers.prefixes", "%q is no prefix", text)
			continue
		}
		c.out.Prefixes = append(c.out.Prefixes, p.Masked())
		own[text] = text
	}
	imported := map[string]bool{}
	for _, i := range o.Imports {
		vrf := i.VRF
		if vrf == "default" {
			vrf = ""
		}
		prefixes, ok := c.prefixes[vrf]
		if !ok {
			c.invalid("routers.imports", "VRF %q has no router in this object", i.VRF)
		}
		if imported[vrf] {
			continue
		}
		imported[vrf] = true
		for _, text := range prefixes {
			own[text] = text
		}
	}
	is.Neighbors = make([]ConvertedNeighbor, 0, len(o.Neighbors))
	for i := range o.Neighbors {
		is.Neighbors = append(is.Neighbors, c.neighbor(o, &o.Neighbors[i], own))
	}
	c.out.Routers = append(c.out.Routers, is)
}

// neighbor converts a neighbor of a router with these prefixes, its own and imported ones.
func (c *converter) neighbor(o *Router, n *Neighbor, own map[string]string) ConvertedNeighbor {
	is := ConvertedNeighbor{Session: n.Session}
	if len(n.Other) > 0 {
		is.Other = maps.Clone(n.Other)
		delete(is.Other, "toReceive")
	}
	if a, err := netip.ParseAddr(n.Address); err == nil {
		is.Addr = a.Unmap()
	}
	if a, err := netip.ParseAddr(n.SourceAddress); err == nil {
		is.Source = a.Unmap()
	}
	var known bool
	is.Family, known = n.Family()
	wrong := func(field, format string, args ...any) {
		c.invalid("routers.neighbors."+field, "neighbor "+n.ID()+": "+format, args...)
	}
	switch {
	case n.Address == "" && n.Interface == "":
		wrong("address", "it has neither address nor interface")
	case n.Address != "" && n.Interface != "":
		wrong("interface", "it has address and interface")
	case n.LocalASN != 0 && n.ASN != 0 && n.ASN == o.ASN:
		wrong("localASN", "%d in a session within an AS", n.LocalASN)
	case n.BFDProfile != "" && !c.profiles[n.BFDProfile]:
		wrong("bfdProfile", "%s is not in this object", n.BFDProfile)
	case (n.ASN == 0) == (n.DynamicASN == ""):
		wrong("asn", "want exactly one of asn and dynamicASN")
	case n.DynamicASN != "" && n.DynamicASN != "internal" && n.DynamicASN != "external":
		wrong("dynamicASN", "%q", n.DynamicASN)
	case !known:
		wrong("address", "%q is no address", n.Address)
	}
	if problem := badTimers(n.HoldTime, n.KeepaliveTime); problem != "" {
		wrong("holdTime", "%s", problem)
	}
	if n.Password != "" && n.Secret.Name != "" {
		wrong("password", "it has password and passwordSecret")
	}
	a := &advertised{converter: c, neighbor: n, family: is.Family, own: own}
	a.convert(&is)
	if problem := badReceive(n.Other["toReceive"]); problem != "" {
		wrong("toReceive", "%s", problem)
	}
	return is
}

func badTimers(hold, keepalive *Duration) string {
	switch {
	case (hold == nil) != (keepalive == nil):
		return "want both holdTime and keepaliveTime or none"
	case hold == nil:
		return ""
	}
	if whole := hold.Truncate(time.Second); whole != 0 && whole < 3*time.Second {
		return fmt.Sprintf("holdTime %s is neither 0 nor at least 3s", hold.Duration)
	}
	if keepalive.Duration > hold.Duration {
		return fmt.Sprintf("keepaliveTime %s is longer than holdTime %s", keepalive.Duration, hold.Duration)
	}
	return ""
}

// advertised checks what a neighbor receives.
type advertised struct {
	*converter
	neighbor *Neighbor
	family   Family
	// own are the prefixes of the router, and allowed those of them that the neighbor receives.
	own, allowed map[string]string
}

func (a *advertised) wrong(field, format string, args ...any) {
	a.invalid("routers.neighbors.toAdvertise."+field, "neighbor "+a.neighbor.ID()+": "+format, args...)
}

// fits checks that a prefix is of a family of the neighbor.
func (a *advertised) fits(prefix, field string) {
	if p, ok := ParsePrefix(prefix); !ok || !a.family.Has(p) {
		a.wrong(field, "%q is no prefix of family %s", prefix, a.family)
	}
}

// convert adds the local preferences to the converted neighbor.
func (a *advertised) convert(to *ConvertedNeighbor) {
	advertise := &a.neighbor.Advertise
	a.allowed = a.own
	if advertise.Allowed.Mode != AllowAll {
		a.allowed = make(map[string]string, len(advertise.Allowed.Prefixes))
		for _, p := range advertise.Allowed.Prefixes {
			a.fits(p, "allowed")
			text, is := a.own[p]
			if !is {
				a.wrong("allowed", "prefix %s is not in the router of this object", p)
			}
			a.allowed[p] = text
		}
	}
	preferences, seen := map[string]uint32{}, map[string]bool{}
	for _, l := range advertise.LocalPref {
		for _, p := range l.Prefixes {
			a.fits(p, "withLocalPref")
			text, allowed := a.allowed[p]
			was, twice := preferences[p]
			if !allowed || twice && was != l.LocalPref {
				a.wrong("withLocalPref", "prefix %s is not allowed, or has several local preferences", p)
			}
			if !twice {
				preferences[p] = l.LocalPref
				to.LocalPref = append(to.LocalPref, PrefixLocalPref{text, l.LocalPref})
			}
		}
		a.unique(seen, strconv.FormatUint(uint64(l.LocalPref), 10), l.Prefixes, "withLocalPref")
	}
	to.LocalPref = slices.Clip(to.LocalPref)
	seen = map[string]bool{}
	for _, l := range advertise.Community {
		name, ok := parseCommunity(l.Community)
		if !ok {
			a.wrong("withCommunity", "%q is no community", l.Community)
		}
		for _, p := range l.Prefixes {
			a.fits(p, "withCommunity")
			if _, is := a.allowed[p]; !is {
				a.wrong("withCommunity", "prefix %s is not allowed", p)
			}
		}
		a.unique(seen, name, l.Prefixes, "withCommunity")
	}
}

// unique checks that a list has no prefix twice, and that no list before it has its key: frr-k8s admits no second one,
// whatever families the lists have.
func (a *advertised) unique(seen map[string]bool, key string, prefixes []string, field string) {
	if seen[key] {
		a.wrong(field, "%s is there twice", key)
	}
	seen[key] = seen[key] || len(prefixes) > 0
	here := make(map[string]bool, len(prefixes))
	for _, p := range prefixes {
		if here[p] {
			a.wrong(field, "prefix %s is there twice", p)
		}
		here[p] = true
	}
}

// parseCommunity returns the usual form of a community of frr-k8s, which may have leading zeros.
func parseCommunity(text string) (string, bool) {
	parts, bits := strings.Split(text, ":"), 16
	if len(parts) == 4 && parts[0] == "large" {
		parts, bits = parts[1:], 32
	} else if len(parts) != 2 {
		return "", false
	}
	var out []string
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, bits)
		if err != nil {
			return "", false
		}
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ":"), true
}

// badReceive returns what is wrong with the prefixes that a neighbor may send.
func badReceive(data json.RawMessage) string {
	var receive struct {
		Allowed struct {
			Prefixes []struct {
				Prefix string `json:"prefix"`
				LE     int    `json:"le"`
				GE     int    `json:"ge"`
			} `json:"prefixes"`
			Mode string `json:"mode"`
		} `json:"allowed"`
	}
	if len(data) == 0 {
		return ""
	}
	if err := json.Unmarshal(data, &receive); err != nil {
		return err.Error()
	}
	if receive.Allowed.Mode == AllowAll {
		return ""
	}
	for _, s := range receive.Allowed.Prefixes {
		p, ok := ParsePrefix(s.Prefix)
		switch {
		case !ok:
			return fmt.Sprintf("%q is no prefix", s.Prefix)
		case s.LE > 0 && (s.GE > s.LE || p.Bits() > s.LE), s.GE > 0 && p.Bits() > s.GE:
			return fmt.Sprintf("%s: want length <= ge <= le", s.Prefix)
		}
	}
	return ""
}
