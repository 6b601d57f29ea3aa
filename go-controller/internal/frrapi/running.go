// SPDX-License-Identifier: Apache-2.0

package frrapi

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Running are the prefixes that FRR advertises, by neighbor of the default VRF, sorted: those that it originates and
// whose prefix list for the neighbor permits them. A neighbor is known by its interface or its canonical address: the
// names of lists have it as the FRRConfiguration spells it (Session.ID).
type Running map[string][]netip.Prefix

// The names of the prefix lists that frr-k8s writes for a neighbor end like this.
const allowed4, allowed6 = "-allowed-ipv4", "-allowed-ipv6"

// The limits of a configuration that is read. The account of frr-k8s' daemon, which each node has, can write those of
// all nodes. A configuration of frr-k8s has 170 bytes per prefix of one neighbor, and less for further ones.
const (
	// MaxText is the maximum length of its text in bytes.
	MaxText = 1 << 20
	// MaxAdvertised is the maximum number of prefixes x neighbors: those of eight neighbors with 1,000 each.
	MaxAdvertised = 8000
	// maxNeighborID is the maximum length of the name of a neighbor, in bytes. Addresses and interfaces are shorter.
	maxNeighborID = 64
)

// ParseRunning reads FRR's running configuration, as an FRRNodeState has it. Lines that are not understood are skipped.
// The result does not refer to the text. Of a configuration beyond the limits, there is none, and an error.
func ParseRunning(text string) (Running, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("%d bytes, at most %d are read", len(text), MaxText)
	}
	originated := map[netip.Prefix]bool{}
	permitted := map[string]map[netip.Prefix]bool{}
	inDefault := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		indented := line[0] == ' '
		switch {
		case len(words) == 0:
		case words[0] == "router" && !indented:
			// router bgp ASN [vrf NAME]
			inDefault = len(words) == 3 && words[1] == "bgp"
		case words[0] == "exit" && !indented:
			inDefault = false
		case inDefault && words[0] == "network" && len(words) == 2:
			if p, err := netip.ParsePrefix(words[1]); err == nil {
				originated[p.Masked()] = true
			}
		case len(words) == 7 && words[1] == "prefix-list" && words[5] == "permit":
			// ip prefix-list NAME seq N permit PREFIX
			id, is := strings.CutSuffix(words[2], allowed4)
			if !is {
				id, is = strings.CutSuffix(words[2], allowed6)
			}
			p, err := netip.ParsePrefix(words[6])
			if !is || err != nil || len(id) > maxNeighborID {
				continue
			}
			id = canonical(id)
			if permitted[id] == nil {
				permitted[strings.Clone(id)] = map[netip.Prefix]bool{}
			}
			permitted[id][p.Masked()] = true
		}
	}
	out, count := Running{}, 0
	for id, prefixes := range permitted {
		maps.DeleteFunc(prefixes, func(p netip.Prefix, _ bool) bool { return !originated[p] })
		if count += len(prefixes); count > MaxAdvertised {
			return nil, fmt.Errorf("more than %d prefixes x neighbors, no more are read", MaxAdvertised)
		}
		if len(prefixes) > 0 {
			out[id] = slices.SortedFunc(maps.Keys(prefixes), netip.Prefix.Compare)
		}
	}
	return out, nil
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
