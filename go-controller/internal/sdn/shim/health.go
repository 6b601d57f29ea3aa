// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
)

// pulse is what a question after an agent's health came to.
type pulse int

const (
	well pulse = iota
	// silent: no answer in time. The node may be gone.
	silent
	// refused: the node says that nobody listens. Its kernel goes on.
	refused
	// unfit: the agent says that the node shall carry nothing.
	unfit
)

// ask asks an agent for its health, on a connection of its own: an old one would not notice that
// the other end is another one now.
func ask(ctx context.Context, at netip.AddrPort) (p pulse, why string) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	closed := make(chan struct{}, 1)
	client, conn, err := dial(at, closed)
	if err != nil {
		return silent, err.Error()
	}
	defer func() { _ = conn.Close() }()
	answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
	switch {
	case err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING:
		return well, ""
	case err == nil:
		return unfit, "its agent is not serving"
	case status.Code(err) == codes.FailedPrecondition:
		return unfit, status.Convert(err).Message()
	}
	select {
	case <-closed:
		return refused, "its agent does not run"
	default:
		return silent, "its agent does not answer"
	}
}

// obeys waits until an agent obeys a version of its Node. It returns what the agent could not do,
// by address.
func obeys(ctx context.Context, at netip.AddrPort, version string) (map[netip.Addr]string, error) {
	client, conn, err := dial(at, make(chan struct{}, 1))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: revision.Question(version)}, grpc.WaitForReady(true))
	if err != nil {
		return nil, err
	}
	for {
		answer, err := stream.Recv()
		if status.Code(err) == codes.FailedPrecondition {
			var failed map[netip.Addr]string
			if err := json.Unmarshal([]byte(status.Convert(err).Message()), &failed); err != nil {
				return nil, fmt.Errorf("answer of the agent at %s: %w", at, err)
			}
			return failed, nil
		}
		if err != nil {
			return nil, err
		}
		if answer.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			return nil, nil
		}
	}
}

// dial returns a client for an agent; closed is told when the node refuses the connection.
func dial(at netip.AddrPort, closed chan<- struct{}) (healthpb.HealthClient, *grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+at.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "tcp", address)
			if errors.Is(err, syscall.ECONNREFUSED) {
				select {
				case closed <- struct{}{}:
				default:
				}
			}
			return conn, err
		}))
	if err != nil {
		return nil, nil, fmt.Errorf("ask the agent at %s: %w", at, err)
	}
	return healthpb.NewHealthClient(conn), conn, nil
}

const (
	// probeEvery is the time between two questions, probeTimeout how long an answer may take.
	probeEvery   = time.Second
	probeTimeout = 300 * time.Millisecond
	// misses is how many questions in a row have to stay without an answer, or with one, until
	// that counts.
	misses = 3
	// firstPause is the time between the first questions to an agent: a new controller is to know
	// soon who is lost.
	firstPause = probeTimeout + 50*time.Millisecond
	// kernelTime is how long the kernel of a node without an agent may hold its addresses, rounded up.
	kernelTime = 12 * time.Second
)

// state is what is known of an agent's health. It is pure.
type state struct {
	asked, missed, answered int
	// closedSince is when the agent was found gone first, zero if it was not.
	closedSince time.Time
	// lost says why the node is, empty if it is not.
	lost string
}

// feel takes note of a pulse, and returns when to ask again.
func (s *state) feel(now time.Time, p pulse, why string) (wait time.Duration) {
	s.asked++
	if p != silent {
		s.missed = 0
	}
	if p != refused {
		s.closedSince = time.Time{}
	}
	if p != well {
		s.answered = 0
	}
	switch p {
	case well:
		if s.answered++; s.answered >= misses || s.lost == "" {
			s.lost = ""
		}
	case silent:
		if s.missed++; s.missed >= misses {
			s.lost = why
		}
	case refused:
		if s.closedSince.IsZero() {
			s.closedSince = now
		}
		if now.Sub(s.closedSince) >= kernelTime {
			s.lost = why
		}
	case unfit:
		s.lost = why
	}
	if s.asked < misses && p == silent {
		return firstPause
	}
	return probeEvery
}
