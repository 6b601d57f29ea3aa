// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/load"
)

// rates returns a section of sustained load on pods of each node, over each family. perUnit is how many units of the
// rate a unit of the load is.
func rates(name string, kind load.Kind, workers int, unit, cpuUnit string, perUnit float64) section {
	perCPUUnit := 1000.0
	if kind == load.Stream {
		perCPUUnit = 1 / perUnit
	}
	return section{name, rateHeader, func(s *site, ctx context.Context) error {
		for i, v := range services()[:2] {
			for f, family := range families() {
				r := rateFigure{Section: name, Family: family, Backend: []string{"gateway", "elsewhere"}[i], Unit: unit,
					CPUUnit: cpuUnit}
				totals, err := s.takeTurns(ctx, v, f, load.Spec{Kind: kind, Workers: workers, Duration: s.duration})
				if err != nil {
					return err
				}
				r = newRateFigure(r, totals, perUnit, perCPUUnit)
				s.report.Rates = append(s.report.Rates, r)
				if err := s.show(r); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// takeTurns runs a load on each path in turn, as often as there are rounds, so that what else the machine does affects
// all paths.
func (s *site) takeTurns(ctx context.Context, v webService, family int, spec load.Spec) ([]pathTotal, error) {
	all, err := s.paths(v, family)
	if err != nil {
		return nil, err
	}
	totals := make([]pathTotal, len(all))
	for round := range s.rounds {
		for i := range all {
			at := i
			if round%2 == 1 { // No path is always the first after another load.
				at = len(all) - 1 - i
			}
			r, u, err := s.load(ctx, all[at], spec)
			if err != nil {
				return nil, err
			}
			totals[at].add(r, u)
		}
	}
	return totals, nil
}

// newConnections counts what connections cost that are opened one after the other.
func (s *site) newConnections(ctx context.Context) error {
	const connections = 300
	for _, k := range []struct {
		backends string
		webService
	}{{"six backends", services()[1]}, {"six on the gateway", services()[0]}, {"six, annotated", services()[2]},
		{"one backend", services()[3]}} {
		for f, family := range families() {
			all, err := s.paths(k.webService, f)
			if err != nil {
				return err
			}
			o := connectionFigure{Backends: k.backends, Family: family}
			for i, p := range all {
				if err := s.purge(ctx); err != nil {
					return err
				}
				r, u, err := s.load(ctx, p, load.Spec{Kind: load.Connect, Workers: 1, Duration: time.Minute,
					Count: connections})
				if err != nil {
					return err
				}
				*o.Paths.at(i) = costOf(r, u.gateway, u.others)
			}
			o.Ratio = ratio(float64(o.Paths.VIP.Upcalls), float64(o.Paths.NodePort.Upcalls))
			s.report.New = append(s.report.New, o)
			if err := s.show(o); err != nil {
				return err
			}
		}
	}
	return nil
}
