// SPDX-License-Identifier: Apache-2.0

package unnumbered

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/net/ipv6"
)

const (
	// often is the interval between messages while no router is known, and the minimum between answers. seldom is the
	// interval after that, as in FRR.
	often  = time.Second
	seldom = 10 * time.Second
	// mtu limits the bytes read. An advertisement is never longer, whatever the link.
	mtu = 1500
)

// Seek discovers the router on an interface until the context ends. It reports the link when a router is found or
// changes, and an error, with the zero Link, as long as discovery is impossible. session returns
// the router with which there is a session; the zero Addr if there is none.
func Seek(ctx context.Context, on string, session func() netip.Addr, report func(Link, error)) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	var router peer
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
		}
		if err := discover(ctx, on, &router, session, report); err != nil {
			report(Link{}, fmt.Errorf("look for a router on interface %s: %w", on, err))
		}
		retry.Reset(often)
	}
}

// port sends and receives on one interface.
type port struct {
	dev   *net.Interface
	conn  *ipv6.PacketConn
	local netip.Addr
	// nodes and routers are the all-nodes and all-routers multicast addresses of the link.
	nodes, routers *net.IPAddr
}

func discover(ctx context.Context, on string, router *peer, session func() netip.Addr, report func(Link, error)) error {
	p, err := open(on)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { p.conn.Close() })()
	defer p.conn.Close()
	router.reopened()
	var sent time.Time
	next, checkAt := time.Now(), time.Now()
	for {
		deadline := checkAt
		if next.Before(checkAt) {
			deadline = next
		}
		if err := p.conn.SetReadDeadline(deadline); err != nil {
			return err
		}
		kind, from, err := p.receive()
		now := time.Now()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if err := p.check(); err != nil {
				return err
			}
			checkAt = now.Add(often)
			if now.Before(next) {
				break
			}
			if err := p.send(router.silent(now)); err != nil {
				return err
			}
			sent, next = now, now.Add(seldom)
			if !router.Peer.IsValid() {
				next = now.Add(often)
			}
		case err != nil:
			return err
		case kind == solicitation:
			next = sent.Add(often)
		case kind == advertisement && from != p.local:
			if router.receive(p.local, from, now, session()) {
				report(router.Link, nil)
				next = now // Let the router discover us at once.
			}
		}
	}
}

func open(on string) (*port, error) {
	p := &port{}
	var err error
	if p.dev, err = net.InterfaceByName(on); err != nil {
		return nil, err
	}
	if p.local, err = linkLocal(p.dev); err != nil {
		return nil, err
	}
	if p.nodes, err = group(netip.IPv6LinkLocalAllNodes(), p.dev); err != nil {
		return nil, err
	}
	if p.routers, err = group(netip.IPv6LinkLocalAllRouters(), p.dev); err != nil {
		return nil, err
	}
	raw, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if err != nil {
		return nil, err
	}
	p.conn = ipv6.NewPacketConn(raw)
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterSolicitation)
	filter.Accept(ipv6.ICMPTypeRouterAdvertisement)
	if err := errors.Join(
		p.conn.SetICMPFilter(&filter),
		p.conn.SetControlMessage(ipv6.FlagHopLimit|ipv6.FlagInterface, true),
		p.conn.SetMulticastLoopback(false),
		p.conn.JoinGroup(p.dev, p.routers),
	); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return p, nil
}

// group returns a multicast address of a link. Its zone is an index: net caches the index of a name for a minute, and
// an interface that was created again has another one.
func group(a netip.Addr, dev *net.Interface) (*net.IPAddr, error) {
	return net.ResolveIPAddr("ip6", a.WithZone(strconv.Itoa(dev.Index)).String())
}

// linkLocal returns the interface's own link-local address.
func linkLocal(dev *net.Interface) (netip.Addr, error) {
	addrs, err := dev.Addrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is6() && prefix.Addr().
			IsLinkLocalUnicast() {
			return prefix.Addr().WithZone(dev.Name), nil
		}
	}
	return netip.Addr{}, errors.New("no link-local IPv6 address")
}

// check returns an error if the interface has changed since the port was opened.
func (p *port) check() error {
	dev, err := net.InterfaceByName(p.dev.Name)
	if err != nil {
		return err
	}
	if local, err := linkLocal(dev); err != nil || dev.Index != p.dev.Index || local != p.local {
		return errors.Join(err, errors.New("the interface has changed"))
	}
	p.dev = dev
	return nil
}

// send sends an advertisement, and also a solicitation if ask is true.
func (p *port) send(ask bool) error {
	to := &ipv6.ControlMessage{HopLimit: hops, IfIndex: p.dev.Index}
	_, err := p.conn.WriteTo(advertise(p.dev.HardwareAddr), to, p.nodes)
	if ask && err == nil {
		_, err = p.conn.WriteTo(solicit(p.dev.HardwareAddr), to, p.routers)
	}
	return err
}

// receive returns the type and the sender of the next message. The type 0 is a message to ignore.
func (p *port) receive() (kind byte, from netip.Addr, err error) {
	buffer := make([]byte, mtu)
	n, meta, source, err := p.conn.ReadFrom(buffer)
	if err != nil || meta == nil || meta.IfIndex != p.dev.Index {
		return 0, from, err
	}
	if from, err = netip.ParseAddr(source.String()); err != nil || !valid(buffer[:n], meta.HopLimit, from) {
		return 0, from, nil
	}
	return buffer[0], from.WithZone(p.dev.Name), nil
}
