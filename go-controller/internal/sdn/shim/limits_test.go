// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
)

// maxFrame is the maximum length of a frame that a client must accept (RFC 9113 section 6.5.2).
const maxFrame = 16 << 10

// startHeaders serves one client, whose request it answers with a message in the headers, whatever size the client
// accepts. It then sends to done whether the client has read all of it.
func startHeaders(t *testing.T, n *network, message string) (at netip.AddrPort, done <-chan bool) {
	t.Helper()
	at, listener := n.listen(t)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":status", "200"}, {"content-type", "application/grpc"},
		{"grpc-status", fmt.Sprint(uint32(codes.FailedPrecondition))}, {"grpc-message", message}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan bool, 1)
	go func() { read <- answerWith(listener, block.Bytes()) == nil }()
	return at, read
}

// answerWith answers the first request with a block of headers. It returns an error if the client closes the connection
// before it has read that.
func answerWith(listener net.Listener, block []byte) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		if _, request := frame.(*http2.HeadersFrame); !request {
			continue
		}
		stream := frame.Header().StreamID
		part := min(len(block), maxFrame)
		err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block[:part], EndStream: true,
			EndHeaders: part == len(block)})
		for rest := block[part:]; err == nil && len(rest) > 0; rest = rest[part:] {
			part = min(len(rest), maxFrame)
			err = framer.WriteContinuation(stream, part == len(rest), rest[:part])
		}
		return err
	}
}

// listing returns the message of an agent in which n addresses have failed.
func listing(t *testing.T, n int, why string) string {
	t.Helper()
	failed := map[netip.Addr]string{}
	for a := netip.MustParseAddr("2001:db8::1"); len(failed) < n; a = a.Next() {
		failed[a] = why
	}
	text, err := json.Marshal(failed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newLimited returns a network, its dialer, and a context that ends if an answer is read without an end.
func newLimited(t *testing.T) (context.Context, *network, dialer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	n := newNetwork()
	return ctx, n, n.dial
}

// A host that answers for an agent makes the controller keep no more than the answer of one with the most addresses.
func TestHeadersOfAgentAreLimited(t *testing.T) { synctest.Test(t, testHeadersOfAgentAreLimited) }

func testHeadersOfAgentAreLimited(t *testing.T) {
	ctx, n, dial := newLimited(t)
	at, _ := startHeaders(t, n, listing(t, sdn.MaxVIPs, strings.Repeat("x", 64)))
	if failed, err := dial.acknowledges(ctx, at, "1"); err != nil || len(failed) != sdn.MaxVIPs {
		t.Errorf("%d of the most addresses: %v", len(failed), err)
	}
	for name, message := range map[string]string{
		"more than the most addresses": listing(t, sdn.MaxVIPs+1, "x"),
		"a long reason":                listing(t, 1, strings.Repeat("x", revision.MaxHeaders)),
	} {
		at, _ := startHeaders(t, n, message)
		if failed, err := dial.acknowledges(ctx, at, "1"); err == nil {
			t.Errorf("%s: %d are accepted", name, len(failed))
		}
	}
	at, read := startHeaders(t, n, listing(t, 500_000, ""))
	if failed, err := dial.acknowledges(ctx, at, "1"); err == nil {
		t.Errorf("%d addresses are accepted", len(failed))
	}
	if <-read {
		t.Error("the client has read more than it accepts")
	}
	at, _ = startHeaders(t, n, strings.Repeat("x", maxHeaders))
	if _, why, _ := dial.ask(ctx, at); why != "its agent does not answer" {
		t.Errorf("a long reason of a node: %.100q", why)
	}
	if ctx.Err() != nil {
		t.Error("an answer is read without an end")
	}
}

// watchedAgent answers with messages until the client ends.
type watchedAgent struct {
	healthpb.UnimplementedHealthServer
	answer *healthpb.HealthCheckResponse
}

func (a *watchedAgent) Watch(_ *healthpb.HealthCheckRequest,
	stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	for {
		if err := stream.Send(a.answer); err != nil {
			return err
		}
	}
}

func TestMessagesOfAgentAreLimited(t *testing.T) { synctest.Test(t, testMessagesOfAgentAreLimited) }

func testMessagesOfAgentAreLimited(t *testing.T) {
	ctx, n, dial := newLimited(t)
	notYet := func() *healthpb.HealthCheckResponse {
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}
	}
	large := notYet()
	field := []byte{0x7a, 0x80, 0x08} // field 15 of 1024 bytes, which no version of the message has
	large.ProtoReflect().SetUnknown(append(field, make([]byte, maxAnswer)...))
	for name, c := range map[string]struct {
		answer *healthpb.HealthCheckResponse
		want   string
	}{
		"without an end": {notYet(), "without an end"},
		"large":          {large, status.Error(codes.ResourceExhausted, "").Error()},
	} {
		at := n.serve(t, &watchedAgent{answer: c.answer})
		_, err := dial.acknowledges(ctx, at, "1")
		if err == nil || !strings.Contains(err.Error(), c.want) || ctx.Err() != nil {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
