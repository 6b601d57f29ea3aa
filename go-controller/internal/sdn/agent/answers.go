// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/klog/v2"
)

// answers is the server of health checks. If its address is in use, listening is retried. Meanwhile no held address
// is given up.
type answers struct {
	address string
	health  *health
	server  *grpc.Server
	// again fires when listening must be retried.
	again <-chan time.Time
	next  time.Time

	mu  sync.Mutex
	err error // why health checks are not answered
}

func newAnswers(address string, h *health) *answers {
	return &answers{address: address, health: h, err: errors.New("health checks are not answered yet")}
}

// Healthy returns the reason why no health checks are answered, or nil.
func (s *answers) Healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// listen starts the server unless it is running, and reports whether health checks are answered now.
func (s *answers) listen(ctx context.Context) bool {
	if s.server != nil && s.Healthy() == nil {
		return true
	}
	if time.Now().Before(s.next) {
		return false
	}
	s.stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		s.failed(fmt.Errorf("listen for health checks at %s: %w", s.address, err))
		s.next, s.again = time.Now().Add(listenEvery), time.After(listenEvery)
		return false
	}
	s.server = grpc.NewServer()
	healthpb.RegisterHealthServer(s.server, s.health)
	server := s.server
	go func() {
		if err := server.Serve(listener); err != nil {
			s.failed(fmt.Errorf("answer health checks at %s: %w", s.address, err))
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = nil
	return true
}

func (s *answers) failed(err error) {
	klog.ErrorS(err, "Failed to serve health checks", "retryIn", listenEvery)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *answers) stop() {
	if s.server != nil {
		s.server.Stop()
		s.server = nil
	}
}
