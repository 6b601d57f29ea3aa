// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
)

// heartbeat is the result of one health check of an agent.
type heartbeat int

const (
	well heartbeat = iota
	// silent means that the node has not accepted a connection in time. It may be gone.
	silent
	// refused means that the node refuses connections because no agent listens. The node's kernel still works.
	refused
	// hung means that the node accepts connections and its agent does not answer, as if it hangs or another client keeps
	// it busy. The node's kernel still works.
	hung
	// unfit means that the agent reports that the node must not hold addresses.
	unfit
)

// maxText is how much of an agent's text is passed on, in bytes. It becomes part of conditions, and who answers at the
// agent's address is not authenticated.
const maxText = 256

// Limits of a client. An agent that is taken over, or any host that has its address, answers whatever it likes.
const (
	// maxHeaders limits the headers of an answer to a health check, in bytes. They contain the reason of an agent that
	// is unfit. Answers about a version may be longer (revision.MaxHeaders).
	maxHeaders = 8 << 10
	// maxAnswer limits one message, in bytes. It contains a number.
	maxAnswer = 1 << 10
	// maxAnswers limits the messages about one version. An agent sends two: not yet, and done.
	maxAnswers = 4
	// bufferSize is the size of each buffer of a connection. window is how much data an agent may send in advance, the
	// minimum of gRPC, which otherwise grows it.
	bufferSize = 4 << 10
	window     = 64 << 10
)

// shortened returns the beginning of a text of an agent, without what is no UTF-8.
func shortened(text string) string {
	return convert.Truncate(strings.ToValidUTF8(text, ""), maxText)
}

// dialer connects to agents.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialTCP is the dialer of all but tests.
func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, network, address)
}

// ask sends a health check to an agent on a new connection. An existing connection would not detect that a different
// process now has the address. If the agent is well, it also returns the fingerprint of the addresses that have failed
// (revision.FailedHeader), which is empty if the agent has sent none.
func (d dialer) ask(ctx context.Context, at netip.AddrPort) (p heartbeat, why, failed string) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	kernel := silent
	var mu sync.Mutex // a connection may be established after the deadline
	client, conn, err := d.client(at, maxHeaders, func(h heartbeat) {
		mu.Lock()
		defer mu.Unlock()
		kernel = h
	})
	if err != nil {
		return silent, err.Error(), ""
	}
	defer func() { _ = conn.Close() }()
	var header metadata.MD
	answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
	switch {
	case err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING:
		return well, "", strings.Join(header.Get(revision.FailedHeader), "")
	case err == nil:
		return unfit, "its agent is not serving", ""
	case status.Code(err) == codes.FailedPrecondition:
		return unfit, shortened(status.Convert(err).Message()), ""
	}
	mu.Lock()
	defer mu.Unlock()
	if kernel == refused {
		return refused, "its agent is not running", ""
	}
	return kernel, "its agent does not answer", ""
}

// acknowledges waits until an agent has applied a version of its Node, or until the deadline of ctx. It returns the
// errors of the agent by address.
func (d dialer) acknowledges(ctx context.Context, at netip.AddrPort, version string) (map[netip.Addr]string, error) {
	client, conn, err := d.client(at, revision.MaxHeaders, func(heartbeat) {})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: revision.ServiceName(version)},
		grpc.WaitForReady(true))
	for range maxAnswers {
		var answer *healthpb.HealthCheckResponse
		if err == nil {
			answer, err = stream.Recv()
		}
		switch {
		case status.Code(err) == codes.FailedPrecondition:
			failed, err := failedAddresses(status.Convert(err).Message())
			if err != nil {
				return nil, errors.New(shortened(fmt.Sprintf("answer of the agent at %s: %v", at, err)))
			}
			return failed, nil
		case status.Code(err) == codes.DeadlineExceeded, ctx.Err() != nil:
			<-ctx.Done() // the agent has the deadline, too, and may end the stream first
			return nil, errUnconfirmed
		case err != nil:
			return nil, errors.New(shortened(err.Error()))
		case answer.GetStatus() == healthpb.HealthCheckResponse_SERVING:
			return nil, nil
		}
	}
	return nil, fmt.Errorf("the agent at %s has sent %d answers without an end", at, maxAnswers)
}

// failedAddresses reads the errors of an agent by address.
func failedAddresses(text string) (map[netip.Addr]string, error) {
	var failed map[netip.Addr]string
	if err := json.Unmarshal([]byte(text), &failed); err != nil {
		return nil, err
	}
	if len(failed) > sdn.MaxVIPs {
		return nil, fmt.Errorf("%d addresses are more than %d", len(failed), sdn.MaxVIPs)
	}
	for a, why := range failed {
		failed[a] = shortened(why)
	}
	return failed, nil
}

// client returns a client for an agent, which takes headers up to a size. It calls kernel with what the node's kernel
// answers to a connection: hung, unless the agent answers, or refused.
func (d dialer) client(
	at netip.AddrPort, headers uint32, kernel func(heartbeat),
) (healthpb.HealthClient, *grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+at.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithMaxHeaderListSize(headers), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithReadBufferSize(bufferSize), grpc.WithWriteBufferSize(bufferSize),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := d(ctx, "tcp", address)
			switch {
			case err == nil:
				kernel(hung)
			case errors.Is(err, syscall.ECONNREFUSED):
				kernel(refused)
			}
			return conn, err
		}))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the agent at %s: %w", at, err)
	}
	return healthpb.NewHealthClient(conn), conn, nil
}

const (
	// probeEvery is the interval between health checks. probeTimeout is how long an answer may take.
	probeEvery   = time.Second
	probeTimeout = 300 * time.Millisecond
	// misses is how many consecutive health checks must fail, or succeed, before the state changes.
	misses = 3
	// firstPause is the interval between the first health checks of an agent, so that a new controller soon detects
	// lost nodes.
	firstPause = probeTimeout + 50*time.Millisecond
	// kernelTime is how long the kernel of a node without a working agent may hold its addresses, rounded up.
	kernelTime = 12 * time.Second
)

// state tracks the health of an agent. It has no side effects.
type state struct {
	checks, missed, answered int
	// keptSince is since when the agent has not answered while the node's kernel, which keeps addresses, was found to
	// work, or zero.
	keptSince time.Time
	// lost is why the node is lost, or empty.
	lost string
}

// observe records a heartbeat and returns when to check again.
func (s *state) observe(now time.Time, p heartbeat, why string) (wait time.Duration) {
	s.checks++
	if p != silent {
		s.missed = 0
	}
	if p != well {
		s.answered = 0
	}
	switch p {
	case well:
		s.keptSince = time.Time{}
		if s.answered++; s.answered >= misses || s.lost == "" {
			s.lost = ""
		}
	case silent:
		if s.missed++; s.missed >= misses {
			s.lost = why
		}
	case refused, hung:
		if s.keptSince.IsZero() {
			s.keptSince = now
		}
	case unfit:
		s.keptSince = time.Time{}
		s.lost = why
	}
	// A silent check in between does not extend the time: the kernel's addresses expire all the same.
	if !s.keptSince.IsZero() && now.Sub(s.keptSince) >= kernelTime {
		s.lost = why
	}
	if s.checks < misses && p == silent {
		return firstPause
	}
	return probeEvery
}
