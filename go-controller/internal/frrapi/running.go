// SPDX-License-Identifier: Apache-2.0

package frrapi

import (
	"net/netip"
	"slices"
	"strings"
)

// Running are the prefixes that FRR advertises, by neighbor of the default VRF (Session.ID), sorted: those that it
// originates and whose prefix list for the neighbor permits them.
type Running map[string][]netip.Prefix

// The names of the prefix lists that frr-k8s writes for a neighbor end like this.
const allowed4, allowed6 = "-allowed-ipv4", "-allowed-ipv6"

// ParseRunning reads FRR's running configuration, as an FRRNodeState has it. Lines that are not understood are skipped.
func ParseRunning(text string) Running {
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
			if !is || err != nil {
				continue
			}
			if permitted[id] == nil {
				permitted[id] = map[netip.Prefix]bool{}
			}
			permitted[id][p.Masked()] = true
		}
	}
	out := Running{}
	for id, prefixes := range permitted {
		var list []netip.Prefix
		for p := range prefixes {
			if originated[p] {
				list = append(list, p)
			}
		}
		if len(list) > 0 {
			slices.SortFunc(list, netip.Prefix.Compare)
			out[id] = list
		}
	}
	return out
}

// SessionID returns the name of a neighbor in a BGPSessionState: IPv6 addresses are written out there, with dashes.
func SessionID(id string) string {
	a, err := netip.ParseAddr(id)
	if err != nil || a.Is4() {
		return id
	}
	return strings.ReplaceAll(a.StringExpanded(), ":", "-")
}
