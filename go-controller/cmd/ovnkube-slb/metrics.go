// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metricsserver"
)

// newRegistry returns a registry with the metrics of the Go runtime and the process.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// serveMetrics serves metrics at --metrics-bind-address until ctx ends, to clients that the API server of config
// authorizes. Requests are reviewed with the credentials of the process, whether it holds the lease or not.
func serveMetrics(ctx context.Context, g *errgroup.Group, o *common, config *rest.Config,
	registry prometheus.Gatherer) error {
	if o.metricsAddress == "" {
		return nil
	}
	server, err := metricsserver.New(metricsserver.Options{
		Config: config, Metrics: registry, Profiles: o.pprof, CertFile: o.metricsCert, KeyFile: o.metricsKey,
	})
	if err != nil {
		return err
	}
	g.Go(func() error {
		listener, err := bind(ctx, o.metricsAddress)
		if listener == nil {
			return err
		}
		return server.Serve(ctx, listener)
	})
	return nil
}

// checkMetrics validates the options of the metrics server.
func (o *common) checkMetrics(wrong func(flag string, value any, what string)) {
	if o.metricsAddress != "" && samePort(o.metricsAddress, o.healthAddress) {
		wrong(flagMetrics, o.metricsAddress, fmt.Sprintf("is also --%s %s: metrics are served over TLS, health is not",
			flagHealth, o.healthAddress))
	}
	if (o.metricsCert == "") != (o.metricsKey == "") {
		wrong(flagMetricsCert, o.metricsCert, fmt.Sprintf("goes with --%s %q: both are needed, or neither", flagMetricsKey,
			o.metricsKey))
	}
	if o.metricsCert != "" && o.metricsKey != "" {
		if err := metricsserver.CheckFiles(o.metricsCert, o.metricsKey); err != nil {
			wrong(flagMetricsCert, o.metricsCert, err.Error())
		}
	}
}

// samePort reports whether two listeners would conflict.
func samePort(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	everywhere := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return hostA == hostB || everywhere(hostA) || everywhere(hostB)
}
