// SPDX-License-Identifier: Apache-2.0

package golden

import "fmt"

// Peer returns the manifest of a BGPPeer of all nodes.
func Peer(name, address string) string {
	return fmt.Sprintf(`---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: %s}
spec: {myASN: 64512, peerASN: 64513, peerAddress: %s}
`, name, address)
}

// Advertisement returns the manifest of a BGPAdvertisement that advertises a pool to all peers. It has the pool's name.
func Advertisement(pool string) string {
	return fmt.Sprintf(`---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPAdvertisement
metadata: {name: %[1]s}
spec: {ipAddressPools: [%[1]s]}
`, pool)
}
