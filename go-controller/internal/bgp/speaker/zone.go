// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Addresses have the name of their interface as zone everywhere except in calls of package net, which get its index:
// net caches the index of a name for a minute, and an interface that was created again has another one.

// zoned returns a link-local IPv6 address with its zone, and any other address unchanged.
func zoned(a netip.Addr, zone string) netip.Addr {
	if a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "" {
		return a.WithZone(zone)
	}
	return a
}

// withInterfaceIndex returns an address with the current index of its interface as zone.
func withInterfaceIndex(a netip.Addr) (netip.Addr, error) {
	if a.Zone() == "" {
		return a, nil
	}
	dev, err := net.InterfaceByName(a.Zone())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("interface %s: %w", a.Zone(), err)
	}
	return a.WithZone(strconv.Itoa(dev.Index)), nil
}

// localOf returns the local address of a connection to an address with the given zone. The zone that net returns is
// from its cache.
func localOf(conn interface{ LocalAddr() net.Addr }, zone string) netip.Addr {
	var local netip.AddrPort
	switch a := conn.LocalAddr().(type) {
	case *net.TCPAddr:
		local = a.AddrPort()
	case *net.UDPAddr:
		local = a.AddrPort()
	}
	return zoned(local.Addr().Unmap().WithZone(""), zone)
}

// named replaces the zones in the error of a dialer.
func named(err error, zone string) error {
	var failed *net.OpError
	if !errors.As(err, &failed) {
		return err
	}
	for _, a := range []net.Addr{failed.Source, failed.Addr} {
		if a, ok := a.(*net.TCPAddr); ok && a.Zone != "" {
			a.Zone = zone
		}
	}
	return err
}
