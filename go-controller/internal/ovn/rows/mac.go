// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"crypto/sha256"
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// PortMAC returns the MAC address of a shard's router on the segment.
func PortMAC(cluster string, id world.ShardID) string { return mac(cluster, id, "ext") }

// mac derives the locally administered unicast address (IEEE 802) of a shard's port. The address never changes: ARP
// and ND entries of neighbours stay valid through every failover, and two clusters on one segment don't collide.
// Never change the derivation.
func mac(cluster string, id world.ShardID, port string) string {
	return hashMAC(fmt.Sprintf("%s|%s|%d|%s", cluster, id.Domain, id.Index, port))
}

// hashMAC hashes a string to a locally administered unicast address.
func hashMAC(of string) string {
	h := sha256.Sum256([]byte(of))
	h[0] = h[0]&^0x01 | 0x02
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4], h[5])
}
