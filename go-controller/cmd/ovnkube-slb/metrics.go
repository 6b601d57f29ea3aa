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

// newRegistry has the metrics of the process itself.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// serveMetrics answers at --metrics-bind-address until the context ends, to clients that the API server of config
// allows. Requests are checked with the rights of the process, whether it holds the lease or not.
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

// checkMetrics reports what is wrong with where and how metrics are served.
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

// samePort reports whether two listeners could not exist side by side.
func samePort(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	everywhere := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return hostA == hostB || everywhere(hostA) || everywhere(hostB)
}
