// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	packet "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

const (
	hostileSessions       = 32
	hostileASN, victimASN = 64512, 64500
	// when the invalid data begins; later than both: once the session is Established.
	beforeOpen, beforeKeep = 0, 1
)

// hostile is a router to which a speaker has sessions, each from an address of its own.
type hostile struct {
	listener net.Listener
	conns    chan *net.TCPConn
}

func newHostile(f *testing.F) *hostile {
	f.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	h := &hostile{listener, make(chan *net.TCPConn, hostileSessions)}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(),
		klog.LoggerWithValues(klog.Background(), "fuzz", true)))
	s := New(Options{})
	s.maxDelay = time.Second
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) }) // Run returns no error
	running.Go(h.accept)
	at := listener.Addr().(*net.TCPAddr).AddrPort()
	var sessions []bgp.Session
	for i := range hostileSessions {
		sessions = append(sessions, bgp.Session{
			Peer: fmt.Sprint(i),
			Neighbor: bgp.Neighbor{
				MyASN: victimASN, PeerASN: hostileASN, Addr: at.Addr(), Port: at.Port(),
				Source:   netip.AddrFrom4([4]byte{127, 0, 1, byte(i + 1)}),
				RouterID: netip.MustParseAddr("192.0.2.1"), Connect: time.Second, GracefulRestart: i%2 == 0, IPv4: true, IPv6: true,
			},
			Routes: map[netip.Prefix]bgp.Attributes{
				netip.MustParsePrefix("203.0.113.1/32"): {NextHop: netip.MustParseAddr("192.0.2.1")},
			},
		})
	}
	s.Set(sessions)
	f.Cleanup(func() {
		closeAll(f, s)
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	return h
}

func (h *hostile) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		select {
		case h.conns <- conn.(*net.TCPConn):
		default: // more connections than the test needs
			_ = conn.Close()
		}
	}
}

// read reads messages until one of the given type, or until the speaker closes the connection.
func read(conn net.Conn, kind byte) error {
	header := make([]byte, packet.BGP_HEADER_LENGTH)
	for {
		if _, err := io.ReadFull(conn, header); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, conn,
			int64(binary.BigEndian.Uint16(header[16:]))-packet.BGP_HEADER_LENGTH); err != nil {
			return err
		}
		if header[18] == kind {
			return nil
		}
	}
}

// sendAt opens a session up to a stage, and then sends invalid data.
func sendAt(conn *net.TCPConn, stage byte, nonsense []byte) error {
	if err := conn.SetDeadline(time.Now().Add(await.Limit)); err != nil {
		return err
	}
	if err := read(conn, packet.BGP_MSG_OPEN); err != nil {
		return err
	}
	if stage > beforeOpen {
		open := packet.NewBGPOpenMessage(hostileASN, 90, "192.0.2.2",
			[]packet.OptionParameterInterface{packet.NewOptionParameterCapability([]packet.ParameterCapabilityInterface{
				packet.NewCapMultiProtocol(packet.RF_IPv4_UC), packet.NewCapMultiProtocol(packet.RF_IPv6_UC),
				packet.NewCapFourOctetASNumber(hostileASN), packet.NewCapRouteRefresh(),
			})})
		raw, err := open.Serialize()
		if err != nil {
			return err
		}
		if _, err := conn.Write(raw); err != nil {
			return err
		}
		if err := read(conn, packet.BGP_MSG_KEEPALIVE); err != nil {
			return err
		}
	}
	if stage > beforeKeep {
		if _, err := conn.Write(keepalive()); err != nil {
			return err
		}
		if err := read(conn, packet.BGP_MSG_UPDATE); err != nil {
			return err
		}
	}
	if _, err := conn.Write(nonsense); err != nil {
		return err
	}
	// The speaker closes the connection once it has processed everything.
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}

// The process survives whatever a router sends at any stage, and dials again.
func FuzzHostileRouter(f *testing.F) {
	for stage := range byte(3) {
		for kind := range byte(6) {
			f.Add(stage, kind, []byte{})
			f.Add(stage, kind, []byte{4, 0xfc, 0, 0, 90, 192, 0, 2, 2, 8, 2, 6, 1, 4, 0, 1, 0, 1})
		}
		f.Add(stage, byte(0xff), []byte{0xff, 0xff, 0, 5, 2})
		f.Add(stage, byte(packet.BGP_MSG_UPDATE), []byte{0, 0, 0, 20, 0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, 2,
			0x90, 14, 0, 0, 24, 203, 0, 113})
	}
	for _, text := range [][]byte{
		{73, 9, 7, 'z', 0xfc, 'r', 'i', 'c', 'h', '1', 0}, // the FQDN capability with a host name in Latin-1
		{75, 3, 2, 0xe8, 0x17},                            // the software version capability
	} {
		parameters := append([]byte{packet.BGP_OPT_CAPABILITY, byte(len(text))}, text...)
		body := append([]byte{4, 0xfc, 0, 0, 90, 192, 0, 2, 2, byte(len(parameters))}, parameters...)
		f.Add(byte(0), byte(0xff), append(newMessage(packet.BGP_MSG_OPEN, body...), keepalive()...))
	}
	h := newHostile(f)
	f.Fuzz(func(t *testing.T, stage, kind byte, body []byte) {
		nonsense := body
		if kind != 0xff { // otherwise not even the header is valid
			nonsense = newMessage(kind, body[:min(len(body), maxMessage-headerLength)]...)
		}
		conn := await.Receive(t, "one of the sessions comes back", h.conns)
		defer conn.Close()
		if err := sendAt(conn, stage%3, nonsense); err != nil {
			t.Logf("the speaker hung up first: %v", err)
		}
	})
}
