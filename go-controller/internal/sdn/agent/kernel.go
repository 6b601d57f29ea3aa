// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// These marks identify our addresses. IPv4 addresses have labels. IPv6 addresses have none, and kernels before 5.18
// don't record who added an address (IFA_PROTO). An IPv6 address of ours is therefore identified by properties that
// no other address combines: it has a prefix length of 128, no duplicate address detection and no route, is
// deprecated from the start (so that the node never uses it as a source address), and is not permanent.
const (
	labelSuffix = ":slb"
	// protocol is our value of IFA_PROTO, which only newer kernels report (0 to 3 are the kernel's own).
	protocol = 0x5b
	ifaProto = 11 // IFA_PROTO of linux/if_addr.h
	// given are the flags that we set. marked are the flags that our addresses have.
	given  = unix.IFA_F_NODAD | unix.IFA_F_NOPREFIXROUTE
	marked = given | unix.IFA_F_DEPRECATED
)

// lifetime is how long an address remains valid without renewal. A killed agent must return within this time to keep
// its addresses.
const lifetime = 10 * time.Second

// link is an interface in this network namespace.
type link struct {
	name  string
	index uint32
	// usable means that the link is up, has a carrier, and is not a loopback device.
	usable bool
	// own are the node's own global addresses on the link that have a subnet. singles are those that have none, of
	// whatever program.
	own     []netip.Prefix
	singles []netip.Addr
	// ours are the addresses on the link that any agent has added. others are all others, with and without a subnet.
	ours, others map[netip.Addr]bool
}

// listLinks reads the links of this network namespace from the kernel (rtnetlink(7)).
func listLinks() ([]*link, error) {
	var links []*link
	byIndex := map[uint32]*link{}
	messages, err := dump(unix.RTM_GETLINK, unix.RTM_NEWLINK, nl.NewIfInfomsg(unix.AF_UNSPEC))
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, m := range messages {
		info := nl.DeserializeIfInfomsg(m)
		const up = unix.IFF_UP | unix.IFF_RUNNING
		l := &link{index: uint32(info.Index), ours: map[netip.Addr]bool{}, others: map[netip.Addr]bool{},
			usable: info.Flags&up == up && info.Flags&unix.IFF_LOOPBACK == 0}
		attributes(m[info.Len():], func(kind uint16, value []byte) {
			if kind == unix.IFLA_IFNAME {
				l.name = nl.BytesToString(value)
			}
		})
		links = append(links, l)
		byIndex[l.index] = l
	}
	messages, err = dump(unix.RTM_GETADDR, unix.RTM_NEWADDR, nl.NewIfAddrmsg(unix.AF_UNSPEC))
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, m := range messages {
		if l := byIndex[nl.DeserializeIfAddrmsg(m).Index]; l != nil {
			l.add(m)
		}
	}
	for _, l := range links {
		slices.SortFunc(l.own, netip.Prefix.Compare)
	}
	return links, nil
}

// add parses an address message of the link.
func (l *link) add(message []byte) {
	header := nl.DeserializeIfAddrmsg(message)
	flags, by := uint32(header.Flags), -1
	var local, address netip.Addr
	label := ""
	attributes(message[header.Len():], func(kind uint16, value []byte) {
		switch kind {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(value)
		case unix.IFA_ADDRESS: // the peer's address if there is one
			address, _ = netip.AddrFromSlice(value)
		case unix.IFA_LABEL:
			label = nl.BytesToString(value)
		case unix.IFA_FLAGS:
			flags = nl.NativeEndian().Uint32(value)
		case ifaProto:
			by = int(value[0])
		}
	})
	if !local.IsValid() {
		local = address
	}
	if !local.IsValid() {
		return
	}
	single := int(header.Prefixlen) == local.BitLen()
	switch {
	case single && local.Is4() && label == labelOf(l.name),
		single && local.Is6() && flags&marked == marked && flags&unix.IFA_F_PERMANENT == 0 && (by == -1 || by == protocol):
		l.ours[local] = true
		return
	case !local.IsGlobalUnicast() || header.Scope != unix.RT_SCOPE_UNIVERSE:
	case single:
		l.singles = append(l.singles, local)
	default:
		l.own = append(l.own, netip.PrefixFrom(local, int(header.Prefixlen)))
	}
	l.others[local] = true
}

// labelOf returns the label of our IPv4 addresses on an interface. Long interface names are truncated to fit
// (IFNAMSIZ, netdevice(7)).
func labelOf(name string) string {
	return name[:min(len(name), unix.IFNAMSIZ-1-len(labelSuffix))] + labelSuffix
}

// addAddress adds an address to a link, or renews it. Only an address of ours is replaced: another program may have
// added the address since the link was read.
func (l *link) addAddress(a netip.Addr) error {
	flags := unix.NLM_F_CREATE | unix.NLM_F_EXCL
	if l.ours[a] {
		flags = unix.NLM_F_CREATE | unix.NLM_F_REPLACE
	}
	seconds := uint32(lifetime / time.Second)
	request := l.request(unix.RTM_NEWADDR, flags, a)
	cache := nl.IfaCacheInfo{IfaCacheinfo: unix.IfaCacheinfo{Valid: seconds}}
	request.AddData(nl.NewRtAttr(unix.IFA_CACHEINFO, cache.Serialize()))
	request.AddData(nl.NewRtAttr(unix.IFA_FLAGS, nl.Uint32Attr(given)))
	request.AddData(nl.NewRtAttr(ifaProto, nl.Uint8Attr(protocol)))
	if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("add %s to interface %s: %w", a, l.name, err)
	}
	return nil
}

// removeAddress removes an address of ours. It returns nil if the address does not exist.
func (l *link) removeAddress(a netip.Addr) error {
	_, err := l.request(unix.RTM_DELADDR, 0, a).Execute(unix.NETLINK_ROUTE, 0)
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s from interface %s: %w", a, l.name, err)
	}
	return nil
}

func (l *link) request(kind, flags int, a netip.Addr) *nl.NetlinkRequest {
	family := unix.AF_INET6
	if a.Is4() {
		family = unix.AF_INET
	}
	header := nl.NewIfAddrmsg(family)
	header.Index, header.Prefixlen = l.index, uint8(a.BitLen())
	request := nl.NewNetlinkRequest(kind, flags|unix.NLM_F_ACK)
	request.AddData(header)
	request.AddData(nl.NewRtAttr(unix.IFA_LOCAL, a.AsSlice()))
	request.AddData(nl.NewRtAttr(unix.IFA_ADDRESS, a.AsSlice()))
	if a.Is4() {
		request.AddData(nl.NewRtAttr(unix.IFA_LABEL, nl.ZeroTerminated(labelOf(l.name))))
	}
	return request
}

// dumpTime limits the attempts of a dump. It is far below the renewal interval.
const dumpTime = time.Second

// dump returns all objects of a kind. If they change during a dump, the kernel reports that the result may be
// inconsistent (NLM_F_DUMP_INTR, which package nl returns as EINTR), and the dump is repeated.
func dump(kind int, answer uint16, header nl.NetlinkRequestData) ([][]byte, error) {
	began := time.Now()
	for {
		request := nl.NewNetlinkRequest(kind, unix.NLM_F_DUMP)
		request.AddData(header)
		messages, err := request.Execute(unix.NETLINK_ROUTE, answer)
		if !errors.Is(err, unix.EINTR) || time.Since(began) > dumpTime {
			return messages, err
		}
	}
}

// attributes calls yield for each route attribute of a message (rtnetlink(7)).
func attributes(data []byte, yield func(kind uint16, value []byte)) {
	list, err := nl.ParseRouteAttr(data)
	if err != nil {
		return // the kernel's own messages are well-formed
	}
	for _, a := range list {
		yield(a.Attr.Type&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), a.Value)
	}
}

// watchLinks calls changed on each change of links and addresses, until stop is called.
func watchLinks(changed func()) (stop func(), err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	socket := os.NewFile(uintptr(fd), "rtnetlink")
	const groups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		_ = socket.Close()
		return nil, os.NewSyscallError("bind", err)
	}
	go func() {
		buffer := make([]byte, os.Getpagesize())
		for {
			_, err := socket.Read(buffer)
			// ENOBUFS means that messages were lost. The kernel's state is read again in any case.
			if err != nil && !errors.Is(err, unix.ENOBUFS) {
				return
			}
			changed()
		}
	}()
	return func() { _ = socket.Close() }, nil
}
