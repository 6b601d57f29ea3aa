// SPDX-License-Identifier: Apache-2.0

package world

import "strings"

// Bridges are the bridges of a chassis by the physical networks that they are on: its
// ovn-bridge-mappings (ovn-controller(8)).
type Bridges map[string]string

// ParseBridges reads ovn-bridge-mappings, "network:bridge,network:bridge"; pairs that are
// none are left out, as ovn-controller does.
func ParseBridges(mappings string) Bridges {
	out := Bridges{}
	for pair := range strings.SplitSeq(mappings, ",") {
		if network, bridge, ok := strings.Cut(pair, ":"); ok && network != "" && bridge != "" {
			out[network] = bridge
		}
	}
	return out
}
