// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The daemon opens no session with a peer whose sessions frr-k8s has.
func TestSessionsOfFRRAreNotOurs(t *testing.T) {
	w := &world.Snapshot{Nodes: []*world.Node{{Name: "n1"}}}
	for name, byFRR := range map[string]bool{"ours": false, "frr": true} {
		w.Peers = append(w.Peers, &world.Peer{Name: name, Nodes: []string{"n1"}, FRRK8s: byFRR,
			Addr: netip.MustParseAddr(map[bool]string{false: "10.50.0.1", true: "10.50.0.2"}[byFRR])})
	}
	if got := agent.Sessions(w, "n1"); len(got) != 1 || got[0].Peer != "ours" {
		t.Errorf("sessions: %+v", got)
	}
}
