// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
)

// A probe tells a listening port from a closed one, and both from silence.
func TestProbe(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	open := netip.MustParseAddrPort(listener.Addr().String())
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	free := netip.MustParseAddrPort(closed.Addr().String())
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}

	probes := probe(t.Context(), []netip.AddrPort{open, free})
	if got := probes[0]; got.To != open || got.Reason != "" || got.From != open.Addr() {
		t.Errorf("an open port: %+v", got)
	}
	if got := probes[1]; got.To != free || got.Reason != explain.ReasonRefused || got.Message == "" {
		t.Errorf("a closed port: %+v", got)
	}
	over, end := context.WithTimeout(t.Context(), 0)
	defer end()
	if got := probe(over, []netip.AddrPort{open})[0]; got.Reason != explain.ReasonNoAnswer {
		t.Errorf("no time left: %+v", got)
	}
	if got := probe(t.Context(), nil); got == nil {
		t.Error("a Service without a TCP port looks like one that was not probed")
	}
}
