// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/memnet"
)

// scrapeTimeout is the default of Prometheus.
const scrapeTimeout = 10 * time.Second

// scraperClient scrapes the server from an address, and counts its connections.
type scraperClient struct {
	http.Client
	connections int
}

// sourceOf returns the source of a client at an address.
func sourceOf(address string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(address), 1000)
}

func newScraper(server *memnet.Listener, source string) *scraperClient {
	p := &scraperClient{}
	p.Client = http.Client{Timeout: scrapeTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the documentation's configuration
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			p.connections++
			return server.Dial(ctx, sourceOf(source))
		}}}
	return p
}

func (c *scraperClient) scrape(t *testing.T) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer prometheus")
	response, err := c.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("status %s, %v", response.Status, err)
	}
}

// keepIdle keeps a connection open without using it until the context ends, and opens another one five seconds after
// the server has closed it.
func keepIdle(ctx context.Context, server *memnet.Listener, source netip.AddrPort) {
	for ctx.Err() == nil {
		conn, err := server.Dial(ctx, source)
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, _ = io.Copy(io.Discard, conn) // until the server closes it
		stop()
		<-time.After(5 * time.Second)
	}
}

// A client without a token keeps many connections open without using them, and opens each again that is closed.
// Prometheus is served all the same, also at the address of that client: pods of a node have one address to others. It
// keeps its connection.
func TestIdleConnectionsKeepNoOtherClientOut(t *testing.T) {
	for name, source := range map[string]string{"another address": "192.0.2.1", "the same address": "192.0.2.66"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				certificates, err := newCertificates("", "")
				if err != nil {
					t.Fatal(err)
				}
				handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
				server := &Server{(&apiServer{}).access().protect(handler), certificates}
				listener := memnet.Listen()
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- server.Serve(ctx, listener) }()
				p := newScraper(listener, source)
				p.scrape(t)
				var idle sync.WaitGroup
				for range 5 * maxConnections {
					idle.Go(func() { keepIdle(ctx, listener, sourceOf("192.0.2.66")) })
				}
				// All of these connections are opened at multiples of 5 s, in no order. A client that comes at the same
				// instant with the same address may be the oldest of more than maxConnections; this one comes between.
				for range 2 {
					<-time.After(31 * time.Second)
					p.scrape(t)
				}
				if p.connections != 1 {
					t.Errorf("%d connections, want one", p.connections)
				}
				// A client that comes meanwhile is served, too.
				other := newScraper(listener, source)
				other.scrape(t)
				other.CloseIdleConnections()
				p.CloseIdleConnections()
				cancel()
				idle.Wait()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
