// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/memnet"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// fewConnections is the limit of the servers of tests.
const fewConnections = 16

// serveFor answers the health checks of a test, and returns the address.
func serveFor(t *testing.T, h *health, listener net.Listener) (at string) {
	t.Helper()
	a := newAnswers("", h)
	a.most = fewConnections
	a.serve(listener)
	t.Cleanup(a.stop)
	return listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// atVersion returns the health of an agent that has applied version 100.
func atVersion() *health {
	h := newHealth()
	h.set("", "100", nil)
	return h
}

// from returns a dialer for connections from an address.
func from(source string) *net.Dialer {
	return &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(source), 0))}
}

// newClient returns a client and its connection, which is closed at the end of the test.
func newClient(t *testing.T, dial func(context.Context, string) (net.Conn, error), options ...grpc.DialOption) (
	healthpb.HealthClient, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///agent", append(options, grpc.WithContextDialer(dial), grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // unless it is closed already
	return healthpb.NewHealthClient(conn), conn
}

// check sends one health check from an address, as the controller does.
func check(t *testing.T, source, at string) {
	t.Helper()
	client, conn := newClient(t, func(ctx context.Context, _ string) (net.Conn, error) {
		return from(source).DialContext(ctx, "tcp", at)
	})
	defer conn.Close()
	answer, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health check from %s: %v (%v)", source, answer, err)
	}
}

// occupy opens a connection from an address and asks to watch the agent in several streams, more than the server
// permits. It returns once one of them has been answered.
func occupy(t *testing.T, source, at string, streams uint32) {
	t.Helper()
	conn, err := from(source).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var requests, fields bytes.Buffer
	requests.WriteString(http2.ClientPreface)
	framer, encoder := http2.NewFramer(&requests, conn), hpack.NewEncoder(&fields)
	err = framer.WriteSettings()
	for i := range streams {
		fields.Reset()
		for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"},
			{Name: ":path", Value: healthpb.Health_Watch_FullMethodName}, {Name: ":authority", Value: "agent"},
			{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"}} {
			if err == nil {
				err = encoder.WriteField(f)
			}
		}
		if err == nil {
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: fields.Bytes(),
				EndHeaders: true})
		}
		if err == nil {
			err = framer.WriteData(2*i+1, true, make([]byte, 5)) // an empty message
		}
	}
	if err == nil {
		_, err = conn.Write(requests.Bytes())
	}
	for err == nil {
		var f http2.Frame
		if f, err = framer.ReadFrame(); err == nil && f.Header().Type == http2.FrameData {
			return
		}
	}
	t.Fatal(err)
}

// A client that keeps many connections and streams open neither uses more than a limited amount of memory nor keeps
// others from being answered. They include the controller if it has the same address.
func TestClientsThatStayAreLimited(t *testing.T) {
	at := serveFor(t, atVersion(), listen(t))
	before := runtime.NumGoroutine()
	for range 2 * fewConnections {
		occupy(t, "127.0.0.1", at, 2*maxStreams)
	}
	for range 3 {
		check(t, "127.0.0.2", at)
		check(t, "127.0.0.1", at)
	}
	// A connection has three goroutines, and one for each stream. Those of the last check may not have ended.
	const most = (fewConnections + 1) * (3 + maxStreams)
	await.NoError(t, fmt.Sprintf("there are at most %d goroutines", most), func(context.Context) error {
		if n := runtime.NumGoroutine() - before; n > most {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

// A request that is larger than that of a controller is refused.
func TestRequestsAreLimited(t *testing.T) {
	at := serveFor(t, atVersion(), listen(t))
	client, _ := newClient(t, func(ctx context.Context, _ string) (net.Conn, error) {
		return from("127.0.0.1").DialContext(ctx, "tcp", at)
	})
	_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 2*maxRequest)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large request: %.200v", err)
	}
}

// A stream ends by itself, but not before the controller gives it up.
func TestStreamsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := memnet.Listen()
		serveFor(t, atVersion(), listener)
		client, _ := newClient(t, func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.Dial(ctx, netip.AddrPort{})
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: revision.ServiceName("101")})
		for err == nil {
			_, err = stream.Recv()
		}
		if took := time.Since(began); took < 2*time.Second || took > 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
