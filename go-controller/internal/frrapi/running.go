// SPDX-License-Identifier: Apache-2.0

package frrapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Running are the prefixes that FRR advertises, by neighbor of the default VRF, sorted: those that it originates and
// whose prefix list for the neighbor permits them, if the configuration shows that FRR applies this list and nothing
// else. A neighbor is known by its interface or its canonical address: the names of lists have it as the
// FRRConfiguration spells it (Session.ID).
type Running map[string][]netip.Prefix

// Restrictions are those of the neighbors that have one, by neighbor.
type Restrictions map[string]Restriction

// Restriction is why prefixes that the list for a neighbor permits do not count as running, or not as all that runs.
type Restriction struct {
	// Unclear is what in FRR's configuration is not of frr-k8s and affects what the neighbor receives, so that this is not
	// known; empty if it is.
	Unclear string
	// WithoutIPv4 and WithoutIPv6 mean that FRR has the family not activated for the neighbor.
	WithoutIPv4, WithoutIPv6 bool
}

// The limits of a configuration that is read. The account of frr-k8s' daemon, which each node has, can write those of
// all nodes. A configuration of frr-k8s has 170 bytes per prefix of one neighbor, and less for further ones.
const (
	// MaxText is the maximum length of its text in bytes.
	MaxText = 1 << 20
	// MaxAdvertised is the maximum number of prefixes x neighbors: those of eight neighbors with 1,000 each.
	MaxAdvertised = 8000
	// MaxRestricted is the maximum number of neighbors with a Restriction.
	MaxRestricted = 64
	// maxNeighborID is the maximum length of the name of a neighbor, in bytes. Addresses and interfaces are shorter.
	maxNeighborID = 64
)

// ParseRunning reads FRR's running configuration, as an FRRNodeState has it: `show running-config`, which omits what is
// FRR's default. The results do not refer to the text. Of a configuration beyond the limits, there are none, and an
// error.
func ParseRunning(text string) (Running, Restrictions, error) {
	if len(text) > MaxText {
		return nil, nil, fmt.Errorf("%d bytes, at most %d are read", len(text), MaxText)
	}
	c := parse(text)
	running, restrictions, count := Running{}, Restrictions{}, 0
	for _, family := range families() {
		for id, ids := range c.listed(family) {
			prefixes, permitted, restriction := c.advertised(family, id, ids)
			if count += permitted; count > MaxAdvertised {
				return nil, nil, fmt.Errorf("more than %d prefixes x neighbors, no more are read", MaxAdvertised)
			}
			if len(prefixes) > 0 {
				running[id] = append(running[id], prefixes...)
			}
			if restriction != (Restriction{}) {
				restrictions[id] = restrictions[id].and(restriction)
			}
			if len(restrictions) > MaxRestricted {
				return nil, nil, fmt.Errorf("more than %d neighbors with configuration that is not of frr-k8s", MaxRestricted)
			}
		}
	}
	for id, prefixes := range running {
		if restrictions[id].Unclear != "" {
			delete(running, id)
			continue
		}
		slices.SortFunc(prefixes, netip.Prefix.Compare)
		running[id] = slices.Clip(prefixes)
	}
	return running, restrictions, nil
}

// and returns both restrictions.
func (r Restriction) and(o Restriction) Restriction {
	return Restriction{cmp.Or(r.Unclear, o.Unclear), r.WithoutIPv4 || o.WithoutIPv4, r.WithoutIPv6 || o.WithoutIPv6}
}

// listed returns the names in the prefix lists of a family by the neighbor of the default VRF that has them. A neighbor
// has several if FRRConfigurations spell its address differently.
func (c *config) listed(family string) map[string][]string {
	out := map[string][]string{}
	for name := range c.lists[family] {
		if id := canonical(name); c.neighbors[id] != nil {
			id = strings.Clone(id) // it is kept
			out[id] = append(out[id], name)
		}
	}
	return out
}

// advertised returns what the neighbor id receives of a family, where names are those in its prefix lists. permitted is
// the number of originated prefixes that these permit.
func (c *config) advertised(family, id string, names []string) (prefixes []netip.Prefix, permitted int, r Restriction) {
	slices.Sort(names)
	candidates, foreign := map[netip.Prefix]bool{}, ""
	for _, name := range names {
		list := c.lists[family][name]
		foreign = cmp.Or(foreign, list.foreign())
		for p := range list.permitted {
			if c.originated[p] != "" {
				candidates[p] = true
			}
		}
	}
	n := c.neighbors[id]
	switch {
	case len(candidates) == 0 && (foreign == "" || len(c.originated) == 0):
		return nil, 0, r
	case n.group == "" && !c.active(n, family):
		return nil, len(candidates), Restriction{WithoutIPv4: family == ipv4, WithoutIPv6: family == ipv6}
	}
	if r.Unclear = cmp.Or(c.unclear(family, id), quoted(foreign), c.suppressed(family, candidates)); r.Unclear != "" {
		return nil, len(candidates), r
	}
	for p := range c.lists[family][strings.TrimSuffix(n.of(family).routeMap, mapSuffix)].permitted {
		if candidates[p] {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes, len(candidates), r
}

// unclear returns why FRR may apply more, or less, to what a neighbor receives of a family than the prefix list of
// frr-k8s, empty if it applies just that.
func (c *config) unclear(family, id string) string {
	n := c.neighbors[id].of(family)
	name, is := strings.CutSuffix(n.routeMap, mapSuffix)
	m := c.maps[n.routeMap]
	switch {
	case c.neighbors[id].group != "":
		return quoted(c.neighbors[id].group)
	case n.routeMap == "":
		return "FRR applies no route map to what the neighbor receives"
	case !is || canonical(name) != id:
		return quoted(fmt.Sprintf("neighbor %s route-map %s out", id, n.routeMap))
	case n.filter != "":
		return quoted(n.filter)
	case m == nil || !m.uses[family]:
		return fmt.Sprintf("FRR's route map %s does not permit the prefix list %s", n.routeMap, name+listSuffix(family))
	case m.foreign != "":
		return quoted(m.foreign)
	case !c.unchecked:
		return quoted("bgp network import-check")
	}
	return ""
}

// suppressed returns what may keep FRR from originating one of some prefixes, empty if nothing does.
func (c *config) suppressed(family string, prefixes map[netip.Prefix]bool) string {
	for _, p := range slices.SortedFunc(maps.Keys(prefixes), netip.Prefix.Compare) {
		if line := c.originated[p]; line != plainNetwork {
			return quoted(line)
		}
		for bits := p.Bits() - 1; bits >= 0 && len(c.aggregates[family]) > 0; bits-- {
			if line := c.aggregates[family][netip.PrefixFrom(p.Addr(), bits).Masked()]; line != "" {
				return quoted(line)
			}
		}
	}
	return ""
}

// quoted returns a Restriction.Unclear because of a line, empty if there is none.
func quoted(line string) string {
	const most = 100 // bytes
	switch {
	case line == "":
		return ""
	case len(line) > most:
		line = line[:most] + "..."
	}
	return fmt.Sprintf("FRR's configuration has %q", line)
}

// canonical returns an address as FRR prints it, and the name of an interface as it is.
func canonical(id string) string {
	if a, err := netip.ParseAddr(id); err == nil {
		return a.String()
	}
	return id
}

// SessionID returns the name of a neighbor in a BGPSessionState: IPv6 addresses are written out there, with dashes.
func SessionID(id string) string {
	a, err := netip.ParseAddr(id)
	if err != nil || a.Is4() {
		return id
	}
	return strings.ReplaceAll(a.StringExpanded(), ":", "-")
}
