// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without a network.
type pipes struct {
	accept chan net.Conn
	// open counts the connections that the server has not closed.
	open atomic.Int32
}

// pipe is the server's end of a connection.
type pipe struct {
	net.Conn
	open   *atomic.Int32
	closed atomic.Bool
}

func (p *pipe) Close() error {
	if !p.closed.Swap(true) {
		p.open.Add(-1)
	}
	return p.Conn.Close()
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.accept
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error {
	close(p.accept)
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns a connection that has sent a text.
func (p *pipes) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	p.open.Add(1)
	p.accept <- &pipe{Conn: server, open: &p.open}
	if _, err := client.Write([]byte(text)); err != nil {
		t.Error(err)
	}
	return client
}

// get sends a request and expects an answer.
func (p *pipes) get(t *testing.T) net.Conn {
	t.Helper()
	c := p.dial(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || string(text) != "ok\n" {
		t.Errorf("%d, %q, %v", answer.StatusCode, text, err)
	}
	return c
}

// Any process of the node can reach the port of the kubelet's probes. Its connections take little memory, and keep no
// other from being served.
func TestConnectionsForProbesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer func() { stop(); <-time.After(shutdownTimeout) }()
		p := &pipes{accept: make(chan net.Conn)}
		go func() {
			_ = serveHTTP(ctx, p, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) }))
		}()
		for range 1000 {
			p.get(t)
			if n := p.open.Load(); n > 64 {
				t.Fatalf("%d connections are open", n)
			}
		}
		<-time.After(time.Minute)
		if synctest.Wait(); p.open.Load() != 0 {
			t.Errorf("%d connections are open a minute after their requests", p.open.Load())
		}
		for _, text := range []string{"GET /healthz HTTP/1.1\r\n",
			"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"} {
			go func() { _, _ = io.Copy(io.Discard, p.dial(t, text)) }()
			<-time.After(time.Minute)
			if synctest.Wait(); p.open.Load() != 0 {
				t.Errorf("a connection is open a minute after a part of a request: %q", text)
			}
		}
	})
}
