// SPDX-License-Identifier: Apache-2.0

package world

// Fault is what prevents a node from serving a physical network, or all of them. The zero value is no fault.
type Fault struct {
	Kind FaultKind
	// Message says what is wrong, for people.
	Message string
	// Links are the interfaces without carrier, as in the message, and Bridge is the bridge without a usable interface,
	// of a FaultUplink.
	Links, Bridge string
}

// FaultKind says which part of a node has a fault. Those of guards are also the kinds in their metrics.
type FaultKind string

// The faults that guards report.
const (
	FaultUplink        FaultKind = "uplink"
	FaultOVNController FaultKind = "ovn_controller"
	FaultVswitchd      FaultKind = "ovs_vswitchd"
)

// The faults that follow from reports of agents: one can't observe its zone or does not answer, or can't change its
// zone because of the northbound database or of ovn-northd.
const (
	FaultAgent      FaultKind = "agent"
	FaultUnwritable FaultKind = "unwritable"
	FaultNorthd     FaultKind = "northd"
)

// EveryNetwork is the key in Node.Faults for all physical networks of a node.
const EveryNetwork = "*"

// FaultOf returns what prevents a node from serving a physical network, the zero value if nothing does.
func (n *Node) FaultOf(network string) Fault {
	if f, ok := n.Faults[network]; ok {
		return f
	}
	return n.Faults[EveryNetwork]
}
