// SPDX-License-Identifier: Apache-2.0

// Package routes watches the routes of the kernel in a network namespace (rtnetlink(7)).
package routes

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// received is the size of the socket's receive buffer in bytes: enough for some thousand routes that change at once.
const received = 16 << 20

// Change is a route that was added, replaced or deleted.
type Change struct {
	Prefix  netip.Prefix // the zero Prefix for a default route
	Deleted bool
	// NextHops counts gateways.
	NextHops int
	// Protocol is who made the route, such as unix.RTPROT_BGP.
	Protocol int
}

func changeOf(u netlink.RouteUpdate) Change {
	c := Change{Deleted: u.Type == unix.RTM_DELROUTE, NextHops: len(u.MultiPath), Protocol: int(u.Protocol)}
	if u.Gw != nil || u.Via != nil {
		c.NextHops = 1
	}
	if u.Dst != nil {
		c.Prefix, _ = netip.ParsePrefix(u.Dst.String()) // the kernel's prefixes are valid
	}
	return c
}

// Watch calls seen, one call at a time, for each change of the named network namespace after Watch has returned, until
// the context ends. An error means that changes may have been missed. (`ip monitor` would miss what changes before that
// program has subscribed, without saying so.)
func Watch(ctx context.Context, namespace string, seen func(Change, error)) error {
	ns, err := netns.GetFromName(namespace)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	defer func() { _ = ns.Close() }() // the socket stays in the namespace
	updates := make(chan netlink.RouteUpdate)
	failures := make(chan error)
	if err := netlink.RouteSubscribeWithOptions(updates, ctx.Done(), netlink.RouteSubscribeOptions{
		Namespace: &ns, ReceiveBufferSize: received, ReceiveBufferForceSize: true,
		ErrorCallback: func(err error) { failures <- err },
	}); err != nil {
		return fmt.Errorf("routes of network namespace %s: %w", namespace, err)
	}
	go func() {
		for {
			select {
			case err := <-failures:
				if ctx.Err() == nil {
					seen(Change{}, err)
				}
			case u, open := <-updates:
				if !open {
					return
				}
				seen(changeOf(u), nil)
			}
		}
	}()
	return nil
}
