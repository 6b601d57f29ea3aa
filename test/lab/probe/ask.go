// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Ask sends one request over "tcp" or "udp" and returns the response line, "<name> <client> <request>". source is the
// source port, 0 for any. A port that a connection has just closed can be reused immediately.
func Ask(ctx context.Context, network string, source uint16, target netip.AddrPort) (string, error) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if control := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}); control != nil {
			return control
		}
		return err
	}}
	d.LocalAddr = sourceOf(network, source)
	conn, err := d.DialContext(ctx, network, target.String())
	if err != nil {
		return "", fmt.Errorf("ask %s %s: %w", network, target, err)
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // No TIME_WAIT, so that the next request may use the same ports.
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("?\n")); err != nil {
		return "", fmt.Errorf("ask %s %s: %w", network, target, err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("answer of %s %s: %w", network, target, err)
	}
	return line, nil
}

// sourceOf returns the local address with the source port, or nil for port 0, which means any port.
func sourceOf(network string, port uint16) net.Addr {
	switch {
	case port == 0:
		return nil
	case network == "udp":
		return &net.UDPAddr{Port: int(port)}
	default:
		return &net.TCPAddr{Port: int(port)}
	}
}
