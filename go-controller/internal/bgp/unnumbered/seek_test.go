// SPDX-License-Identifier: Apache-2.0

package unnumbered

import (
	"net"
	"net/netip"
	"testing"
)

// Package net would take the index of an earlier interface of the name from its cache.
func TestZonesOfGroupsAreIndexes(t *testing.T) {
	got, err := group(netip.IPv6LinkLocalAllNodes(), &net.Interface{Name: "eth0", Index: 7})
	if err != nil || got.Zone != "7" {
		t.Errorf("group %s (%v), want the zone 7", got, err)
	}
}
