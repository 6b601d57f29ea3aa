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
func (a *answers) Healthy() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// listen starts the server unless it is running, and reports whether health checks are answered now.
func (a *answers) listen(ctx context.Context) bool {
	if a.server != nil && a.Healthy() == nil {
		return true
	}
	if time.Now().Before(a.next) {
		return false
	}
	a.stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.address)
	if err != nil {
		a.failed(fmt.Errorf("listen for health checks at %s: %w", a.address, err))
		a.next, a.again = time.Now().Add(listenEvery), time.After(listenEvery)
		return false
	}
	a.server = grpc.NewServer()
	healthpb.RegisterHealthServer(a.server, a.health)
	server := a.server
	go func() {
		if err := server.Serve(listener); err != nil {
			a.failed(fmt.Errorf("answer health checks at %s: %w", a.address, err))
		}
	}()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = nil
	return true
}

func (a *answers) failed(err error) {
	klog.ErrorS(err, "Failed to serve health checks", "retryIn", listenEvery)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *answers) stop() {
	if a.server != nil {
		a.server.Stop()
		a.server = nil
	}
}
