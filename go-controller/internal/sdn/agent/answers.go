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
	"google.golang.org/grpc/keepalive"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/connlimit"
)

// Limits of the server. Every client that reaches its port may use it, and any text is a valid request. The controller
// uses a new connection with one stream for each check, for at most two seconds.
const (
	maxConnections = 256
	maxStreams     = 2
	// maxRequest and maxHeaders limit one request, which names a version of the Node, in bytes.
	maxRequest = 1 << 10
	maxHeaders = 8 << 10
	// bufferSize is the size of each buffer of a connection. window is how much data a client may send in advance, the
	// minimum of gRPC, which otherwise grows it.
	bufferSize = 4 << 10
	window     = 64 << 10
	// handshakeTime is how long a client may take to begin. After connectionAge a connection is asked to end, and after
	// connectionGrace it is closed.
	handshakeTime   = 5 * time.Second
	connectionAge   = 5 * time.Second
	connectionGrace = time.Second
)

// answers is the server of health checks. If its address is in use, listening is retried. Meanwhile no held address
// is given up.
type answers struct {
	address string
	health  *health
	server  *grpc.Server
	// most is maxConnections, except in tests.
	most int
	// again fires when listening must be retried.
	again <-chan time.Time
	next  time.Time

	mu  sync.Mutex
	err error // why health checks are not answered
}

func newAnswers(address string, h *health) *answers {
	return &answers{address: address, health: h, most: maxConnections,
		err: errors.New("health checks are not answered yet")}
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
	a.serve(listener)
	return true
}

// serve starts the server.
func (a *answers) serve(listener net.Listener) {
	server := grpc.NewServer(grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxHeaderListSize(maxHeaders), grpc.ConnectionTimeout(handshakeTime),
		grpc.ReadBufferSize(bufferSize), grpc.WriteBufferSize(bufferSize), grpc.StaticConnWindowSize(window),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: connectionAge,
			MaxConnectionAgeGrace: connectionGrace}))
	healthpb.RegisterHealthServer(server, a.health)
	a.server = server
	go func() {
		if err := server.Serve(connlimit.New(listener, a.most)); err != nil {
			a.failed(fmt.Errorf("answer health checks at %s: %w", a.address, err))
		}
	}()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = nil
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
