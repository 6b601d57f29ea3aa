// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

const (
	headerTimeout   = 5 * time.Second
	shutdownTimeout = 2 * time.Second
)

// serve answers at the addresses of the options until the context ends.
func serve(ctx context.Context, g *errgroup.Group, o *common, metrics prometheus.Gatherer, ready func() error) {
	muxes := map[string]*http.ServeMux{}
	at := func(address string) *http.ServeMux {
		if muxes[address] == nil {
			muxes[address] = http.NewServeMux()
		}
		return muxes[address]
	}
	if o.metricsAddress != "" {
		at(o.metricsAddress).Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
		if o.pprof {
			at(o.metricsAddress).HandleFunc("/debug/pprof/", pprof.Index)
			at(o.metricsAddress).HandleFunc("/debug/pprof/profile", pprof.Profile)
		}
	}
	if o.healthAddress != "" {
		at(o.healthAddress).HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
		at(o.healthAddress).HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready()) })
	}
	for address, mux := range muxes {
		g.Go(func() error { return listen(ctx, address, mux) })
	}
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok") //nolint:errcheck // the client may be gone
}

func listen(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		server.Shutdown(bounded) //nolint:errcheck // the process ends either way
	})()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve at %s: %w", address, err)
	}
	return nil
}
