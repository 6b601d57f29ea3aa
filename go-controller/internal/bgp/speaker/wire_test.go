// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
)

// TestWire pins each octet that a router receives, except for the headers. The file does of an archive has one step per
// line: the words of bgp.Neighbor, routes, and what the router sends.
func TestWire(t *testing.T) {
	golden.RunArchives(t, "testdata/*.txtar", func(a *txtar.Archive) (got string, err error) {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{t: t, neighbor: victim(), routes: map[netip.Prefix]bgp.Attributes{}}
			for line := range strings.Lines(string(a.Files[0].Data)) {
				line = strings.TrimSpace(line)
				if err = w.step(strings.Fields(line)); err != nil {
					return
				}
			}
			got = w.out.String()
		})
		return got, err
	})
}

type wire struct {
	t        *testing.T
	neighbor bgp.Neighbor
	routes   map[netip.Prefix]bgp.Attributes
	session  *session
	router   net.Conn
	in       *inbox
	out      strings.Builder
}

func (w *wire) step(words []string) (err error) {
	sends := func(kind byte) error {
		body, err := hex.DecodeString(strings.Join(words[1:], ""))
		if err != nil {
			return err
		}
		_, err = w.router.Write(newMessage(kind, body...))
		return err
	}
	switch words[0] {
	case "neighbor":
		err = w.setNeighbor(words[1:])
	case "connect":
		ours, router := net.Pipe()
		w.session, w.router, w.in = startSession(w.t, ours, w.neighbor, w.routes), router, collect(router)
		w.routes = map[netip.Prefix]bgp.Attributes{}
	case "route":
		err = addRoute(w.routes, words[1], words[2:])
	case "advertise":
		err = w.session.advertise(w.routes)
		w.routes = map[netip.Prefix]bgp.Attributes{}
	case "open":
		err = sends(packet.BGP_MSG_OPEN)
	case "keepalive":
		err = sends(packet.BGP_MSG_KEEPALIVE)
	case "refresh":
		err = sends(packet.BGP_MSG_ROUTE_REFRESH)
	case "notification":
		err = sends(packet.BGP_MSG_NOTIFICATION)
	case "wait":
		wait, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		<-time.After(wait)
	case "close":
		w.session.close(strings.Join(words[1:], " "))
	case "bfd":
		w.session.closeOnPathFailure(bfdDown())
	default:
		return fmt.Errorf("unknown step %q", words[0])
	}
	if err == nil && w.in != nil {
		w.print(words[0])
	}
	return err
}

// print writes what the router has received after a step.
func (w *wire) print(step string) {
	for _, m := range w.in.take() {
		fmt.Fprintf(&w.out, "%s: %s\n", step, strings.ToUpper(kinds([][]byte{m})))
		for body := hex.EncodeToString(m[headerLength:]); body != ""; {
			line := body[:min(len(body), 100)]
			body = body[len(line):]
			w.out.WriteString("  " + line + "\n")
		}
	}
	if saw := w.session.observed(); w.in.closed() {
		fmt.Fprintf(&w.out, "%s: closed, %s\n", step, saw.why.text)
	}
}

func (w *wire) setNeighbor(words []string) (err error) {
	n := &w.neighbor
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.ParseUint(value, 10, 32) // 0 for words without a number
		switch key {
		case "as":
			n.MyASN = uint32(number)
		case "peer":
			n.PeerASN = uint32(number)
		case "hold":
			n.Hold = time.Duration(number) * time.Second
		case "restart":
			n.GracefulRestart = true
		case "only":
			n.IPv4, n.IPv6 = value == "IPv4", value == "IPv6"
		default:
			return fmt.Errorf("unknown word %q", word)
		}
	}
	return nil
}

func addRoute(routes map[netip.Prefix]bgp.Attributes, to string, words []string) error {
	prefix, err := netip.ParsePrefix(to)
	if err != nil {
		return err
	}
	a := bgp.Attributes{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.ParseUint(value, 10, 32) // 0 for an address
		switch key {
		case "by":
			if a.NextHop, err = netip.ParseAddr(value); err != nil {
				return err
			}
		case "med":
			a.MED = new(uint32(number))
		case "pref":
			a.LocalPref = new(uint32(number))
		case "prepend":
			a.Prepend = uint8(number)
		case "community":
			a.Communities = append(a.Communities, uint32(number))
		case "large":
			a.LargeCommunities = append(a.LargeCommunities, bgp.LargeCommunity{Global: uint32(number), Local1: 1, Local2: 2})
		default:
			return fmt.Errorf("unknown word %q", word)
		}
	}
	routes[prefix] = a
	return nil
}
