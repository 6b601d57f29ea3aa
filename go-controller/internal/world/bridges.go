// SPDX-License-Identifier: Apache-2.0

package world

import "strings"

// GatewayNetwork is the physical network that OVN-Kubernetes itself maps to the bridge of each node's own gateway.
const GatewayNetwork = "physnet"

// Bridges maps physical networks to the bridges of a chassis: its ovn-bridge-mappings (ovn-controller(8)).
type Bridges map[string]string

// ParseBridges parses ovn-bridge-mappings, "network:bridge,network:bridge". Like ovn-controller, it ignores invalid
// pairs.
func ParseBridges(mappings string) Bridges {
	out := Bridges{}
	for pair := range strings.SplitSeq(mappings, ",") {
		if network, bridge, ok := strings.Cut(pair, ":"); ok && network != "" && bridge != "" {
			out[network] = bridge
		}
	}
	return out
}
