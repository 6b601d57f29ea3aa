// SPDX-License-Identifier: Apache-2.0

package speaker

import "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"

const (
	maxTTL = 255
	// gracefulShutdown is a well-known community (RFC 8326 section 5).
	gracefulShutdown = 65535 << 16
)

// asn returns our AS number as the peer sees it.
func asn(n bgp.Neighbor) uint32 {
	if n.LocalASN != 0 {
		return n.LocalASN
	}
	return n.MyASN
}

// peerASN returns the AS number that the peer must have, 0 if several are accepted.
func peerASN(n bgp.Neighbor) uint32 {
	if n.PeerASN == 0 && n.Dynamic == bgp.InternalASN {
		return asn(n)
	}
	return n.PeerASN
}

func internal(n bgp.Neighbor) bool { return peerASN(n) == asn(n) }
