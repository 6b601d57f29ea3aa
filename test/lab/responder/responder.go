// SPDX-License-Identifier: Apache-2.0

// Package responder is the program behind the lab's Services. It responds with its name and the client address that it
// saw, over HTTP, TCP and UDP.
//
// Invariants:
//   - The client address is that of the received packets, so a response shows the translation by load balancers on the
//     path.
//   - A TCP port speaks HTTP if the first line is a request line. Otherwise it responds to each line with "<name>
//     <client> <line>" until the client disconnects.
//   - The source address of a UDP response is the address to which the request was sent.
//   - The same sockets serve IPv4 and IPv6. The address of an IPv4 client is written unmapped.
package responder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
)

const (
	// maxDatagram is the largest UDP payload.
	maxDatagram = 65535
	// maxBody is the maximum size of a request body that is read and discarded to keep the connection usable.
	maxBody = 1 << 20
)

// Options configures a responder.
type Options struct {
	// Name is the beginning of every response. In the lab it is the name of the Pod.
	Name string
	// TCP and UDP are the ports to listen on, on all addresses. Zero selects a free port, which Listening receives.
	TCP, UDP []uint16
	// Listening is called once when all ports are open, with the port numbers in the given order. It may be nil.
	Listening func(tcp, udp []uint16) error
}

type server struct {
	name string
	tcp  []net.Listener
	udp  []*net.UDPConn

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Run serves until the context is done, and then closes all connections. It returns an error only if a port cannot be
// opened or fails.
func Run(ctx context.Context, options Options) error {
	s := &server{name: options.Name, conns: make(map[net.Conn]struct{})}
	defer s.close()
	if err := s.listen(ctx, options); err != nil {
		return fmt.Errorf("responder %s: %w", options.Name, err)
	}
	if options.Listening != nil {
		if err := options.Listening(s.ports()); err != nil {
			return fmt.Errorf("responder %s: report that it listens: %w", options.Name, err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	for _, listener := range s.tcp {
		group.Go(func() error { return s.accept(listener) })
	}
	for _, conn := range s.udp {
		group.Go(func() error { return s.echo(conn) })
	}
	group.Go(func() error {
		<-ctx.Done()
		return nil
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("responder %s: %w", options.Name, err)
	}
	return nil
}

func (s *server) listen(ctx context.Context, options Options) error {
	for _, port := range options.TCP {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return fmt.Errorf("TCP port %d: %w", port, err)
		}
		s.tcp = append(s.tcp, listener)
	}
	for _, port := range options.UDP {
		config := net.ListenConfig{Control: receiveDestination}
		conn, err := config.ListenPacket(ctx, "udp", fmt.Sprintf("[::]:%d", port))
		if err != nil {
			return fmt.Errorf("UDP port %d: %w", port, err)
		}
		s.udp = append(s.udp, conn.(*net.UDPConn))
	}
	return nil
}

func (s *server) ports() (tcp, udp []uint16) {
	for _, listener := range s.tcp {
		tcp = append(tcp, addrPort(listener.Addr()).Port())
	}
	for _, conn := range s.udp {
		udp = append(udp, addrPort(conn.LocalAddr()).Port())
	}
	return tcp, udp
}

// close unblocks every read and accept. It is idempotent.
func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, listener := range s.tcp {
		listener.Close()
	}
	for _, conn := range s.udp {
		conn.Close()
	}
	for conn := range s.conns {
		conn.Close()
	}
}

func (s *server) accept(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept on %s: %w", listener.Addr(), err)
		}
		s.mu.Lock()
		s.conns[conn] = struct{}{}
		s.mu.Unlock()
		go s.serve(conn)
	}
}

// serve responds to one client until it disconnects or fails. Such failures are ignored.
func (s *server) serve(conn net.Conn) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
		conn.Close()
	}()
	client, in := addrPort(conn.RemoteAddr()), bufio.NewReader(conn)
	requestLine := regexp.MustCompile(`^[A-Z]+ \S+ HTTP/1\.[01]\r?\n$`)
	for first := true; ; first = false {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if first && requestLine.MatchString(line) {
			s.serveHTTP(conn, client, bufio.NewReader(io.MultiReader(strings.NewReader(line), in)))
			return
		}
		if _, err := fmt.Fprintf(conn, "%s %s %s", s.name, client, line); err != nil {
			return
		}
	}
}

func (s *server) serveHTTP(conn net.Conn, client netip.AddrPort, in *bufio.Reader) {
	for {
		request, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, request.Body, maxBody); !errors.Is(err, io.EOF) {
			return
		}
		text := fmt.Sprintf("pod=%s client=%s\n", s.name, client)
		answer := http.Response{
			StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: request.Close,
			Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
			ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)),
		}
		if err := answer.Write(conn); err != nil || request.Close {
			return
		}
	}
}

// echo responds to datagrams. Their control message contains the destination address (IPV6_PKTINFO, ipv6(7)). Sent back
// with the response, it sets the source address. Its interface index is cleared, so that routing selects the interface.
func (s *server) echo(conn *net.UDPConn) error {
	data, control := make([]byte, maxDatagram), make([]byte, syscall.CmsgSpace(syscall.SizeofInet6Pktinfo))
	for {
		n, controlled, _, client, err := conn.ReadMsgUDPAddrPort(data, control)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive on %s: %w", conn.LocalAddr(), err)
		}
		const index = syscall.SizeofCmsghdr + 16 // After the header and the 16 bytes of the address.
		if controlled >= index+4 {
			clear(control[index : index+4])
		}
		answer := fmt.Appendf(nil, "%s %s %s", s.name, netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), data[:n])
		// A response that cannot be sent counts as a lost datagram. The next one may succeed.
		_, _, _ = conn.WriteMsgUDPAddrPort(answer, control[:controlled], client)
	}
}

// receiveDestination makes the kernel report the destination address of each datagram.
func receiveDestination(_, _ string, raw syscall.RawConn) error {
	var inner error
	err := raw.Control(func(fd uintptr) {
		inner = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_RECVPKTINFO, 1)
	})
	return errors.Join(err, inner)
}

// addrPort returns the address without the mapping that IPv4 addresses have on a dual-stack socket.
func addrPort(addr net.Addr) netip.AddrPort {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
