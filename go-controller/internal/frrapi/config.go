// SPDX-License-Identifier: Apache-2.0

package frrapi

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// The families, as FRR's configuration names them, and the ends of the names that frr-k8s gives to the route map and to
// the prefix list for what a neighbor receives.
const (
	ipv4, ipv6 = "ipv4", "ipv6"
	mapSuffix  = "-out"
	// plainNetwork is the value in config.originated of a line that has nothing but the prefix.
	plainNetwork = "network"
)

func families() []string { return []string{ipv4, ipv6} }

func listSuffix(family string) string { return "-allowed-" + family }

// config is what a configuration of FRR says about routes of the default VRF. Lines are those of `show running-config`.
type config struct {
	// originated are the lines by which FRR originates prefixes, and aggregates those by which it may withhold more
	// specific ones, by family.
	originated map[netip.Prefix]string
	aggregates map[string]map[netip.Prefix]string
	// unchecked means that FRR originates prefixes that are not in the kernel. It is not the default.
	unchecked bool
	// implicit are the families that are active without a line that says so.
	implicit  map[string]bool
	neighbors map[string]*neighbor
	// lists are the prefix lists of frr-k8s for what neighbors receive, by family and name of the neighbor, and maps the
	// route maps, by name.
	lists map[string]map[string]*prefixList
	maps  map[string]*routeMap
}

// neighbor is a neighbor of the default VRF. group is the line that makes it inherit from a peer group.
type neighbor struct {
	group      string
	ipv4, ipv6 neighborFamily
}

// neighborFamily is what a neighbor has in a family.
type neighborFamily struct {
	on, off bool
	// routeMap is the name of the route map for what it receives. filter is a line that may withhold something else.
	routeMap, filter string
}

func (n *neighbor) of(family string) *neighborFamily {
	if family == ipv4 {
		return &n.ipv4
	}
	return &n.ipv6
}

// active reports whether a family is active for a neighbor that is in no peer group.
func (c *config) active(n *neighbor, family string) bool {
	is := n.of(family)
	return is.on || c.implicit[family] && !is.off
}

// prefixList is a prefix list that frr-k8s writes: it permits single prefixes, or denies all. denied and other are the
// first lines that deny something, and that frr-k8s does not write.
type prefixList struct {
	permitted     map[netip.Prefix]bool
	denied, other string
}

// foreign returns a line that makes it unclear what the list permits, empty if there is none.
func (l *prefixList) foreign() string {
	if len(l.permitted) == 0 {
		return l.other
	}
	return cmp.Or(l.other, l.denied)
}

// routeMap is a route map for what a neighbor receives. uses are the families for which an entry permits the prefix
// list of frr-k8s. It is then permitted whatever other entries do, unless one is foreign: the first line that may deny
// something.
type routeMap struct {
	uses    map[string]bool
	foreign string
}

// entry is an entry of a route map that permits. continues means that further entries follow if its conditions hold.
type entry struct {
	conditions []string
	continues  bool
}

// parser reads a configuration line by line.
type parser struct {
	config
	// inDefault means that the line is one of the router of the default VRF, and family is the address family in it, empty
	// outside of those for unicast. inOther means that it is in another one.
	inDefault, inOther bool
	family             string
	// name is that of the route map in which the line is, and entry its entry, nil if it is in none.
	name  string
	entry *entry
}

func parse(text string) *config {
	p := parser{config: config{originated: map[netip.Prefix]string{}, neighbors: map[string]*neighbor{},
		aggregates: map[string]map[netip.Prefix]string{ipv4: {}, ipv6: {}}, implicit: map[string]bool{ipv4: true},
		lists: map[string]map[string]*prefixList{ipv4: {}, ipv6: {}}, maps: map[string]*routeMap{}}}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case line[0] != ' ':
			p.endEntry()
			p.inDefault, p.inOther, p.family = false, false, ""
			p.section(words)
		case p.inDefault:
			p.router(words)
		case p.entry != nil:
			p.term(words)
		}
	}
	p.endEntry()
	return &p.config
}

// section reads a line that is not indented.
func (p *parser) section(words []string) {
	switch {
	case words[0] == "router":
		// router bgp ASN [vrf NAME]
		p.inDefault = len(words) == 3 && words[1] == "bgp"
	case words[0] == "route-map" && len(words) == 4 && strings.HasSuffix(words[1], mapSuffix):
		// route-map NAME permit|deny N
		if p.maps[words[1]] == nil {
			p.maps[words[1]] = &routeMap{uses: map[string]bool{}}
		}
		if p.name = words[1]; words[2] == "permit" {
			p.entry = &entry{}
		} else {
			p.foreignTerm(words)
		}
	case words[0] == "ip" && len(words) > 3 && words[1] == "prefix-list":
		p.list(ipv4, words[2], words)
	case words[0] == "ipv6" && len(words) > 3 && words[1] == "prefix-list":
		p.list(ipv6, words[2], words)
	}
}

// list reads a line of a prefix list: ip prefix-list NAME [seq N] permit|deny PREFIX [...].
func (p *parser) list(family, name string, words []string) {
	name, is := strings.CutSuffix(name, listSuffix(family))
	terms := words[3:]
	if !is || len(name) > maxNeighborID || terms[0] == "description" {
		return
	}
	l := p.lists[family][name]
	if l == nil {
		l = &prefixList{permitted: map[netip.Prefix]bool{}}
		p.lists[family][name] = l
	}
	if terms[0] == "seq" && len(terms) > 2 {
		terms = terms[2:]
	}
	switch {
	case terms[0] == "deny" && l.denied == "":
		l.denied = strings.Join(words, " ")
	case terms[0] == "deny":
	case terms[0] == "permit" && len(terms) == 2:
		if prefix, err := netip.ParsePrefix(terms[1]); err == nil {
			l.permitted[prefix.Masked()] = true
			return
		}
		fallthrough
	default:
		l.other = cmp.Or(l.other, strings.Join(words, " "))
	}
}

// term reads a line of an entry of a route map.
func (p *parser) term(words []string) {
	switch words[0] {
	case "match":
		p.entry.conditions = append(p.entry.conditions, strings.Join(words[1:], " "))
	case "set", "description":
	case "on-match":
		if p.entry.continues = true; words[len(words)-1] != "next" {
			p.foreignTerm(words)
		}
	default: // such as call
		p.foreignTerm(words)
	}
}

// foreignTerm records a line of the route map that frr-k8s does not write.
func (p *parser) foreignTerm(words []string) {
	m := p.maps[p.name]
	if m.foreign != "" {
		return
	}
	if m.foreign = strings.Join(words, " "); words[0] != "route-map" {
		m.foreign = "route-map " + p.name + ": " + m.foreign
	}
}

// endEntry ends the entry of a route map.
func (p *parser) endEntry() {
	e, list := p.entry, strings.TrimSuffix(p.name, mapSuffix)
	p.entry = nil
	if e == nil || e.continues || len(e.conditions) != 1 {
		return
	}
	switch e.conditions[0] {
	case "ip address prefix-list " + list + listSuffix(ipv4):
		p.maps[p.name].uses[ipv4] = true
	case "ipv6 address prefix-list " + list + listSuffix(ipv6):
		p.maps[p.name].uses[ipv6] = true
	}
}

// router reads a line of the router.
func (p *parser) router(words []string) {
	switch words[0] {
	case "address-family":
		p.family, p.inOther = "", true
		if len(words) == 3 && slices.Contains(families(), words[1]) && words[2] == "unicast" {
			p.family, p.inOther = words[1], false
		}
	case "exit-address-family":
		p.family, p.inOther = "", false
	case "no", "bgp":
		switch line := strings.Join(words, " "); {
		case line == "no bgp network import-check":
			p.unchecked = true
		case line == "no bgp default ipv4-unicast":
			p.implicit[ipv4] = false
		case line == "bgp default ipv6-unicast":
			p.implicit[ipv6] = true
		case p.family != "" && len(words) == 4 && words[1] == "neighbor" && words[3] == "activate":
			p.neighbor(words[2]).of(p.family).off = true
		}
	case "neighbor":
		if len(words) > 2 && len(words[1]) <= maxNeighborID && !p.inOther {
			p.receives(p.neighbor(words[1]), words)
		}
	case "network", "aggregate-address":
		if p.family != "" && len(words) > 1 {
			p.originates(words)
		}
	}
}

// neighbor returns a neighbor by a name of it.
func (p *parser) neighbor(name string) *neighbor {
	id := canonical(name)
	n := p.neighbors[id]
	if n == nil {
		n = &neighbor{}
		p.neighbors[id] = n
	}
	return n
}

// receives reads a line of a neighbor: neighbor NAME WORD...
func (p *parser) receives(n *neighbor, words []string) {
	last := words[len(words)-1]
	if slices.Contains(words[2:len(words)-1], "peer-group") {
		n.group = strings.Join(words, " ")
	}
	if p.family == "" {
		return
	}
	switch is := n.of(p.family); {
	case words[2] == "activate":
		is.on = true
	case words[2] == "route-map" && len(words) == 5 && last == "out":
		is.routeMap = words[3]
	case last == "out", words[2] == "advertise-map", words[2] == "maximum-prefix-out",
		words[2] == "capability" && last != "send": // the router may send a filter (RFC 5291)
		is.filter = strings.Join(words, " ")
	}
}

// originates reads a line that originates a prefix, or that may withhold more specific ones.
func (p *parser) originates(words []string) {
	prefix, err := netip.ParsePrefix(words[1])
	if err != nil {
		return
	}
	prefix = prefix.Masked()
	withholds := slices.Contains(words, "summary-only") || slices.Contains(words, "suppress-map")
	switch {
	case words[0] == "network" && len(words) == 2:
		p.originated[prefix] = plainNetwork
	case words[0] == "network":
		p.originated[prefix] = strings.Join(words, " ")
	case withholds:
		p.aggregates[p.family][prefix] = strings.Join(words, " ")
	}
}
