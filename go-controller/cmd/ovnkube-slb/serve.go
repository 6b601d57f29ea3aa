// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/connlimit"
)

const (
	headerTimeout = 5 * time.Second
	// idleTimeout and maxConnections limit what clients on the node that keep connections open can occupy. The kubelet
	// opens one for each probe.
	idleTimeout     = 30 * time.Second
	maxConnections  = 64
	shutdownTimeout = 2 * time.Second
	// bindEvery is the interval between attempts to listen at an address that is in use.
	bindEvery = time.Second
)

// probes are the handlers of the kubelet's probes. An error fails the probe.
type probes struct {
	// alive returns an error if a restart helps. A nil func means that the process is always alive.
	alive func() error
	ready func() error
}

// serve serves the kubelet's probes at --healthz-bind-address until ctx ends.
func serve(ctx context.Context, g *errgroup.Group, o *common, p probes) {
	if o.healthAddress == "" {
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if p.alive == nil {
			answer(w, nil)
			return
		}
		answer(w, p.alive())
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.ready()) })
	g.Go(func() error { return listen(ctx, o.healthAddress, mux) })
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok") //nolint:errcheck // the client may be gone
}

func listen(ctx context.Context, address string, handler http.Handler) error {
	listener, err := bind(ctx, address)
	if listener == nil {
		return err
	}
	return serveHTTP(ctx, listener, handler)
}

// serveHTTP serves requests on listener until ctx ends, and closes it.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: 2 * headerTimeout,
		IdleTimeout: idleTimeout}
	defer context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		server.Shutdown(bounded) //nolint:errcheck // the process ends either way
	})()
	if err := server.Serve(connlimit.New(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve at %s: %w", listener.Addr(), err)
	}
	return nil
}

// bind listens at an address. It retries while another process listens there, because the work of this process does not
// depend on its probes and metrics. It returns nil and no error when ctx ends.
func bind(ctx context.Context, address string) (net.Listener, error) {
	retry := time.NewTicker(bindEvery)
	defer retry.Stop()
	for {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		switch {
		case err == nil:
			return listener, nil
		case ctx.Err() != nil:
			return nil, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("listen at %s: %w", address, err)
		}
		klog.ErrorS(err, "Address already in use, will retry", "address", address, "retryIn", bindEvery)
		select {
		case <-ctx.Done():
			return nil, nil
		case <-retry.C:
		}
	}
}
