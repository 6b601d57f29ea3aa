// SPDX-License-Identifier: Apache-2.0

package unnumbered

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Package net would take the index of an earlier interface of the name from its cache.
func TestZonesOfGroupsAreIndexes(t *testing.T) {
	got, err := group(netip.IPv6LinkLocalAllNodes(), &net.Interface{Name: "eth0", Index: 7})
	if err != nil || got.Zone != "7" {
		t.Errorf("group %s (%v), want the zone 7", got, err)
	}
}

// The first host that sends an advertisement does not remain the peer if there is no session with it.
func TestPeerIsReplaced(t *testing.T) {
	local, one, other := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2"), netip.MustParseAddr("fe80::3")
	start := time.Unix(1_700_000_000, 0)
	var p peer
	for i, step := range []struct {
		from  netip.Addr
		after time.Duration
		works bool
		want  bool
	}{
		{one, 0, false, true},
		{other, silence, false, false},
		{one, silence, false, false},
		{other, silence + 1, false, true},
		{one, silence + 2, false, false},
		{other, 2 * silence, false, false},
		{one, 2*silence + 2, false, true},
		{one, 4 * silence, true, false},
		{other, 5 * silence, true, false},
		{other, 4*silence + patience, true, false},
		{other, 4*silence + 2*patience, true, false},
		{other, 5*silence + 2*patience, false, false},
		{other, 5*silence + 2*patience + 1, false, true}, // The peer has been silent, and there is no session.
	} {
		session := netip.Addr{}
		if step.works {
			session = p.Peer
		}
		if got := p.receive(local, step.from, start.Add(step.after), session); got != step.want {
			t.Errorf("step %d: %s becomes the peer: %t, want %t", i, step.from, got, step.want)
		}
	}
}
