// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
)

// probeTimeout is how long a probe waits for an answer: TCP sends its SYN again after 1 s and after 3 s (RFC 6298).
const probeTimeout = 4 * time.Second

// probe opens a TCP connection to each target, all at the same time, closes it, and returns what it observed, in the
// order of the targets. The result is not nil.
func probe(ctx context.Context, targets []netip.AddrPort) []explain.Probe {
	probes := make([]explain.Probe, len(targets))
	var running sync.WaitGroup
	for i, to := range targets {
		running.Go(func() { probes[i] = probeOne(ctx, to) })
	}
	running.Wait()
	return probes
}

func probeOne(ctx context.Context, to netip.AddrPort) explain.Probe {
	seen := explain.Probe{To: to, From: sourceTo(ctx, to)}
	conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "tcp", to.String())
	if err == nil {
		conn.Close() //nolint:errcheck // nothing was written
		return seen
	}
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		seen.Reason = explain.ReasonRefused
	case errors.As(err, &timeout) && timeout.Timeout():
		seen.Reason = explain.ReasonNoAnswer
	default:
		seen.Reason = explain.ReasonNoRoute
	}
	var cause *net.OpError
	if seen.Message = err.Error(); errors.As(err, &cause) {
		seen.Message = cause.Err.Error()
	}
	return seen
}

// sourceTo returns the address from which this machine sends to a target, the zero Addr if it has no route.
func sourceTo(ctx context.Context, to netip.AddrPort) netip.Addr {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", to.String()) // sends nothing
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close() //nolint:errcheck // nothing was written
	if local, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		return local.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
