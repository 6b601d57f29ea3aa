// SPDX-License-Identifier: Apache-2.0

// Package responder is the program behind the lab's Services: it tells who it is and whom it saw, over HTTP, TCP and UDP.
//
// Invariants:
//   - The client's address is the one in the packets that arrive, so an answer shows what load balancers on the way did to it.
//   - A TCP port speaks HTTP to a client whose first line is a request line, and else answers each line with
//     "<name> <client> <line>", for as long as the client stays.
//   - A UDP answer leaves from the address that the question was sent to.
//   - IPv4 and IPv6 are served by the same sockets; an IPv4 client's address is written as such, not mapped.
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
	// maxBody is how much of a request's body is read, and thrown away, to keep the connection usable.
	maxBody = 1 << 20
)

// Options say who answers and where.
type Options struct {
	// Name is what every answer begins with; in the lab the Pod's name.
	Name string
	// TCP and UDP are the ports to listen on, at all addresses. Zero: any free port, told to Listening.
	TCP, UDP []uint16
	// Listening is called once when all ports are open, with their numbers in the order given. Nil: not called.
	Listening func(tcp, udp []uint16) error
}

type server struct {
	name string
	tcp  []net.Listener
	udp  []*net.UDPConn

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Run serves until the context is done, and then closes every connection; it returns an error only if a port cannot be opened or fails.
func Run(ctx context.Context, options Options) error {
	s := &server{name: options.Name, conns: make(map[net.Conn]struct{})}
	defer s.close()
	if err := s.listen(ctx, options); err != nil {
		return fmt.Errorf("responder %s: %w", options.Name, err)
	}
	if options.Listening != nil {
		if err := options.Listening(s.ports()); err != nil {
			return fmt.Errorf("responder %s: tell that it listens: %w", options.Name, err)
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

// close ends every read and accept; closing what is closed does nothing.
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

// serve answers one client until it leaves or fails, which is its own business.
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

// echo answers datagrams. Their control message holds the address they were sent to (IPV6_PKTINFO, ipv6(7)): sent back with the answer
// it becomes the answer's source. Its interface index is cleared, so that routing decides the way.
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
		// An answer that cannot be sent is a lost datagram: the client's next one is answered all the same.
		_, _, _ = conn.WriteMsgUDPAddrPort(answer, control[:controlled], client)
	}
}

// receiveDestination makes the kernel tell with each datagram which of our addresses it was sent to.
func receiveDestination(_, _ string, raw syscall.RawConn) error {
	var inner error
	err := raw.Control(func(fd uintptr) {
		inner = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_RECVPKTINFO, 1)
	})
	return errors.Join(err, inner)
}

// addrPort is the address without the mapping that IPv4 gets on a socket for both families.
func addrPort(addr net.Addr) netip.AddrPort {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
