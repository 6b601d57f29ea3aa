// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
)

// MaxProbesPerGuard limits the addresses that one guard probes at a time. It is asked for at most 500, while up to 200
// of those before may be late conflicts, which stay (package decide).
const MaxProbesPerGuard = 700

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

// ServicesToVerify returns the Services whose statuses do not show whether each of their addresses is announced. If
// guards run, these are Contested ones, those that another client has cleared, and those with addresses in
// spec.externalIPs. In any case they are those in PrimaryNetworks.
func (w *Snapshot) ServicesToVerify() []Key {
	guarded := slices.ContainsFunc(w.Nodes, func(n *Node) bool { return n.Guarded })
	var keys []Key
	for _, s := range w.Services {
		if guarded && (s.Contested || s.IsCleared() || len(s.ExternalIPs) > 0) || w.PrimaryNetworks[s.Key.Namespace] {
			keys = append(keys, s.Key)
		}
	}
	return keys
}
