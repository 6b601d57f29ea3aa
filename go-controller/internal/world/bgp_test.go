// SPDX-License-Identifier: Apache-2.0

package world

import "testing"

func TestPeerAcceptsASN(t *testing.T) {
	for name, c := range map[string]struct {
		peer          Peer
		ours, another bool
	}{
		"the AS number of the nodes":     {Peer{MyASN: 64512, PeerASN: 64512}, true, false},
		"another one":                    {Peer{MyASN: 64512, PeerASN: 64513}, false, true},
		"internal":                       {Peer{MyASN: 64512, Internal: true}, true, false},
		"internal, with a local number":  {Peer{MyASN: 64512, LocalASN: 64513, Internal: true}, false, true},
		"external":                       {Peer{MyASN: 64512}, false, true},
		"external, with a local number":  {Peer{MyASN: 64512, LocalASN: 64513}, true, false},
		"an exact one, without internal": {Peer{MyASN: 64512, PeerASN: 64513, Internal: true}, false, true},
	} {
		if ours, another := c.peer.AcceptsASN(64512), c.peer.AcceptsASN(64513); ours != c.ours || another != c.another {
			t.Errorf("%s: accepts 64512: %t, 64513: %t, want %t and %t", name, ours, another, c.ours, c.another)
		}
	}
}
