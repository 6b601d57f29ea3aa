// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// reader checks what frr-k8s demands of one object by itself.
type reader struct {
	name      string
	passwords map[string]string
	profiles  []frrapi.BFDProfile
	routers   []*readRouter
}

type readRouter struct {
	frrapi.Router
	neighbors []*neighbor
}

func (r *reader) conflict(field, format string, args ...any) *Conflict {
	return &Conflict{Object: r.name, Field: "spec.bgp." + field, Message: fmt.Sprintf(format, args...)}
}

func (r *reader) read(spec *frrapi.Spec) *Conflict {
	known := map[string]bool{}
	for _, p := range spec.BGP.BFDProfiles {
		if known[p.Name] {
			return r.conflict("bfdProfiles", "%s is there twice", p.Name)
		}
		known[p.Name] = true
		r.profiles = append(r.profiles, completed(p))
	}
	prefixes := map[string][]string{}
	for _, o := range spec.BGP.Routers {
		prefixes[o.VRF] = o.Prefixes
	}
	for _, o := range spec.BGP.Routers {
		is := &readRouter{Router: o}
		all := slices.Clone(o.Prefixes)
		for _, p := range o.Prefixes {
			if _, ok := parsePrefix(p); !ok {
				return r.conflict("routers.prefixes", "%q is no prefix", p)
			}
		}
		for _, i := range o.Imports {
			vrf := i.VRF
			if vrf == "default" {
				vrf = ""
			}
			imported, ok := prefixes[vrf]
			if !ok {
				return r.conflict("routers.imports", "VRF %q has no router in this object", i.VRF)
			}
			all = append(all, imported...)
		}
		for i := range o.Neighbors {
			n, c := r.neighbor(&o, &o.Neighbors[i], all, known)
			if c != nil {
				return c
			}
			is.neighbors = append(is.neighbors, n)
		}
		r.routers = append(r.routers, is)
	}
	return nil
}

// neighbor checks a neighbor of a router with these prefixes, its own and imported ones.
func (r *reader) neighbor(o *frrapi.Router, n *frrapi.Neighbor, prefixes []string, profiles map[string]bool) (*neighbor,
	*Conflict) {
	wrong := func(field, format string, args ...any) (*neighbor, *Conflict) {
		return nil, r.conflict("routers.neighbors."+field, "neighbor "+n.ID()+": "+format, args...)
	}
	is := &neighbor{Session: n.Session, of: r.name, bfdOf: r.name}
	switch {
	case n.Address == "" && n.Interface == "":
		return wrong("address", "it has neither address nor interface")
	case n.Address != "" && n.Interface != "":
		return wrong("interface", "it has address and interface")
	case n.LocalASN != 0 && n.ASN != 0 && n.ASN == o.ASN:
		return wrong("localASN", "%d in a session within an AS", n.LocalASN)
	case n.BFDProfile != "" && !profiles[n.BFDProfile]:
		return wrong("bfdProfile", "%s is not in this object", n.BFDProfile)
	case (n.ASN == 0) == (n.DynamicASN == ""):
		return wrong("asn", "want exactly one of asn and dynamicASN")
	case n.DynamicASN != "" && n.DynamicASN != "internal" && n.DynamicASN != "external":
		return wrong("dynamicASN", "%q", n.DynamicASN)
	}
	var ok bool
	if is.family, ok = familyOf(&n.Session); !ok {
		return wrong("address", "%q is no address", n.Address)
	}
	if problem := badTimers(n.HoldTime, n.KeepaliveTime); problem != "" {
		return wrong("holdTime", "%s", problem)
	}
	is.password = n.Password
	if secret := n.Secret.Name; secret != "" {
		if n.Password != "" {
			return wrong("password", "it has password and passwordSecret")
		}
		if is.password = r.passwords[secret]; is.password == "" {
			return wrong("passwordSecret", "Secret %s does not exist, is of another type or has no password", secret)
		}
	}
	if c := r.advertise(is, n, prefixes); c != nil {
		return nil, c
	}
	if problem := badReceive(n.Other["toReceive"]); problem != "" {
		return wrong("toReceive", "%s", problem)
	}
	return is, nil
}

func badTimers(hold, keepalive *frrapi.Duration) string {
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

// advertise checks what a neighbor receives, and collects its local preferences.
//
//nolint:gocognit // one check after the other, in the order of frr-k8s
func (r *reader) advertise(is *neighbor, n *frrapi.Neighbor, prefixes []string) *Conflict {
	at := "routers.neighbors.toAdvertise."
	wrong := func(field, format string, args ...any) *Conflict {
		return r.conflict(at+field, "neighbor "+n.ID()+": "+format, args...)
	}
	own, allowed := map[string]bool{}, map[string]bool{}
	for _, p := range prefixes {
		own[p] = true
	}
	if n.Advertise.Allowed.Mode == frrapi.AllowAll {
		allowed = own
	} else {
		for _, p := range n.Advertise.Allowed.Prefixes {
			if c := r.fits(is, p, "allowed"); c != nil {
				return c
			}
			if !own[p] {
				return wrong("allowed", "prefix %s is not in the router of this object", p)
			}
			allowed[p] = true
		}
	}
	is.localPref = map[string]preference{}
	preferences := map[string]bool{}
	for _, l := range n.Advertise.LocalPref {
		for _, p := range l.Prefixes {
			if c := r.fits(is, p, "withLocalPref"); c != nil {
				return c
			}
			was, twice := is.localPref[p]
			if !allowed[p] || twice && was.value != l.LocalPref {
				return wrong("withLocalPref", "prefix %s is not allowed, or has several local preferences", p)
			}
			is.localPref[p] = preference{l.LocalPref, r.name}
		}
		if c := checkUnique(preferences, fmt.Sprint(l.LocalPref), l.Prefixes, wrong, "withLocalPref"); c != nil {
			return c
		}
	}
	communities := map[string]bool{}
	for _, l := range n.Advertise.Community {
		name, ok := parseCommunity(l.Community)
		if !ok {
			return wrong("withCommunity", "%q is no community", l.Community)
		}
		for _, p := range l.Prefixes {
			if c := r.fits(is, p, "withCommunity"); c != nil {
				return c
			}
			if !allowed[p] {
				return wrong("withCommunity", "prefix %s is not allowed", p)
			}
		}
		if c := checkUnique(communities, name, l.Prefixes, wrong, "withCommunity"); c != nil {
			return c
		}
	}
	return nil
}

// checkUnique checks that a list of prefixes has none twice, and that its key is not there for a second list of a
// family.
func checkUnique(seen map[string]bool, key string, prefixes []string,
	wrong func(field, format string, args ...any) *Conflict, field string) *Conflict {
	here := map[string]bool{}
	families := map[string]bool{}
	for _, p := range prefixes {
		if here[p] {
			return wrong(field, "prefix %s is there twice", p)
		}
		here[p] = true
		families[fmt.Sprint(key, "/", strings.Contains(p, ":"))] = true
	}
	for f := range families {
		if seen[f] {
			return wrong(field, "%s is there twice", key)
		}
		seen[f] = true
	}
	return nil
}

// fits checks that a prefix is of a family of the neighbor.
func (r *reader) fits(n *neighbor, prefix, field string) *Conflict {
	p, ok := parsePrefix(prefix)
	if !ok || !n.family.has(p) {
		return r.conflict("routers.neighbors.toAdvertise."+field, "neighbor %s: %q is no prefix of family %s", n.ID(), prefix,
			n.family)
	}
	return nil
}

// parsePrefix parses a prefix, which may have bits after its length.
func parsePrefix(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	return p, err == nil
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
	if receive.Allowed.Mode == frrapi.AllowAll {
		return ""
	}
	for _, s := range receive.Allowed.Prefixes {
		p, ok := parsePrefix(s.Prefix)
		switch {
		case !ok:
			return fmt.Sprintf("%q is no prefix", s.Prefix)
		case s.LE > 0 && (s.GE > s.LE || p.Bits() > s.LE), s.GE > 0 && p.Bits() > s.GE:
			return fmt.Sprintf("%s: want length <= ge <= le", s.Prefix)
		}
	}
	return ""
}
