// SPDX-License-Identifier: Apache-2.0

package world

import (
	"crypto/sha256"
	"fmt"
)

// SegmentMAC returns the MAC address of the shard's router on the segment, in a cluster with that ID.
func (s ShardID) SegmentMAC(cluster string) string { return s.PortMAC(cluster, "ext") }

// PortMAC derives the locally administered unicast address (IEEE 802) of a port of the shard's router. The address
// never changes: ARP and ND entries of neighbours stay valid through every failover, and two clusters on one segment
// don't collide. Never change the derivation.
func (s ShardID) PortMAC(cluster, port string) string {
	return HashMAC(fmt.Sprintf("%s|%s|%d|%s", cluster, s.Domain, s.Index, port))
}

// HashMAC hashes a string to a locally administered unicast address.
func HashMAC(of string) string {
	h := sha256.Sum256([]byte(of))
	h[0] = h[0]&^0x01 | 0x02
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4], h[5])
}
