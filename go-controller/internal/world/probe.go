// SPDX-License-Identifier: Apache-2.0

package world

import "net/netip"

// ProbeRequest asks the guard of a node whether any host on a segment answers for addresses. Its JSON form is part of
// the node's Lease (package kube/convert).
type ProbeRequest struct {
	// ID is different each time that an address is probed.
	ID string `json:"id,omitempty"`
	// Own is the MAC address of our own router on the segment. Its replies are not conflicts.
	Own       string       `json:"own,omitempty"`
	Network   string       `json:"network"`
	VLAN      int          `json:"vlan,omitempty"`
	Addresses []netip.Addr `json:"addresses"`
}
