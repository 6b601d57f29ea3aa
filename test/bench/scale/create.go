// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
)

// created is the number of Services that are created beside the others, one at a time.
const created = 100

// createFigures are the costs of one Service that is created beside all others, with its endpoints.
type createFigures struct {
	Services int `json:"services"`
	// Time from its creation until its status has an address.
	AddressMedian float64 `json:"address_p50_ms"`
	AddressP99    float64 `json:"address_p99_ms"`
	// CPU time of each process per Service.
	ControllerCPU float64 `json:"controller_cpu_ms"`
	GatewayCPU    float64 `json:"agent_of_gateway_cpu_ms"`
	WorkerCPU     float64 `json:"agent_of_other_node_cpu_ms"`
	// Writes to the API server per Service, by resource: also those of the benchmark (the Service and its
	// EndpointSlice), and those that happen anyway, such as renewals of Leases.
	Writes map[string]float64 `json:"writes"`
}

// create creates Services, one after the other.
func (s *site) create(ctx context.Context, gateway, worker *zone) error {
	processes := []*subject.Controller{s.running, gateway.agent, worker.agent}
	cpu, _, err := s.cost(ctx, processes)
	if err != nil {
		return err
	}
	writes, err := s.writes(ctx)
	if err != nil {
		return err
	}
	var address []time.Duration
	for i := range created {
		took, err := s.createOne(ctx, s.result.Services+i)
		if err != nil {
			return err
		}
		address = append(address, took)
	}
	if err := s.running.Settle(ctx); err != nil {
		return err
	}
	if _, err := quiet(ctx, gateway.dir); err != nil {
		return err
	}
	after, _, err := s.cost(ctx, processes)
	if err != nil {
		return err
	}
	now, err := s.writes(ctx)
	if err != nil {
		return err
	}
	f := &createFigures{Services: created, AddressMedian: quantile(address, 0.5), AddressP99: quantile(address, 0.99),
		Writes: map[string]float64{}}
	for i, into := range []*float64{&f.ControllerCPU, &f.GatewayCPU, &f.WorkerCPU} {
		*into = math.Round(10*1000*(after[i]-cpu[i])/created) / 10
	}
	for resource, n := range now {
		if n -= writes[resource]; n > 0 {
			f.Writes[resource] = n / created
		}
	}
	s.result.Zones.Create = f
	s.logf("a Service beside %d has an address after %.0f ms (median; %.0f ms p99), CPU %.1f ms controller, %.1f ms "+
		"gateway, %.1f ms other node, writes %v", s.result.Services, f.AddressMedian, f.AddressP99, f.ControllerCPU,
		f.GatewayCPU, f.WorkerCPU, f.Writes)
	return s.save()
}

// createOne creates a Service with its endpoints and returns how long it took until the status had an address.
func (s *site) createOne(ctx context.Context, i int) (time.Duration, error) {
	services := s.client.CoreV1().Services(namespace)
	w, err := services.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + serviceName(i)})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	endpoints := s.client.DiscoveryV1().EndpointSlices(namespace)
	if _, err := endpoints.Create(ctx, s.slice(i), metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := services.Create(ctx, s.service(i), metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	for event := range w.ResultChan() {
		if svc, ok := event.Object.(*corev1.Service); ok && len(svc.Status.LoadBalancer.Ingress) > 0 {
			return time.Since(began), nil
		}
	}
	return 0, errors.Join(ctx.Err(), fmt.Errorf("the watch of %s ended", serviceName(i)))
}

// addressed reports whether the status of each Service has an address. When many are created at once, the first zone
// may report after all plans are there, so that the controller writes no status for longer than Settle waits.
func (s *site) addressed(ctx context.Context) (bool, error) {
	list, err := s.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(list.Items, func(svc corev1.Service) bool {
		return len(svc.Status.LoadBalancer.Ingress) == 0
	}), nil
}

// eventsWritten waits until the controller has written the Events of what it did: it writes 250 a second, so that those
// of the first Services take much longer than their addresses.
func (s *site) eventsWritten(ctx context.Context) error {
	last := -1.0
	return poll(ctx, func() (bool, error) {
		writes, err := s.writes(ctx)
		done := writes["events"] == last
		last = writes["events"]
		return done, err
	})
}

// poll calls done every quietPeriod until it returns true or an error.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(quietPeriod)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// writes returns how many writes the API server has served, by resource.
func (s *site) writes(ctx context.Context) (map[string]float64, error) {
	text, err := s.plane.Kubectl(ctx, "get", "--raw", "/metrics")
	if err != nil {
		return nil, err
	}
	const pattern = `(?m)^apiserver_request_total\{.*resource="([a-z0-9]+)".*subresource="([a-z]*)"` +
		`.*verb="(?:POST|PUT|PATCH|APPLY)".*\} (\S+)$`
	out := map[string]float64{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", m[0], err)
		}
		name := m[1]
		if m[2] != "" {
			name += "/" + m[2]
		}
		out[name] += n
	}
	return out, nil
}
