// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// floods measures what another pod of the gateway notices while SYNs arrive, and while none do.
func (s *site) floods(ctx context.Context) error {
	for f, family := range families() {
		many, err := s.paths(services()[1], f)
		if err != nil {
			return err
		}
		annotated, err := s.paths(services()[2], f)
		if err != nil {
			return err
		}
		for _, target := range []struct {
			name string
			path
		}{{name: "none"}, {"NodePort, six backends", many[1]}, {"VIP, six backends", many[0]},
			{"VIP, six, annotated", annotated[0]}} {
			figure := floodFigure{Target: target.name, Family: family}
			if err := s.flood(ctx, target.tcp, f, &figure); err != nil {
				return err
			}
			s.report.Floods = append(s.report.Floods, figure)
			if err := s.show(figure); err != nil {
				return err
			}
		}
	}
	return nil
}

// flood floods a target, or none, while one of the other pods asks the other.
func (s *site) flood(ctx context.Context, target []netip.AddrPort, family int, figure *floodFigure) error {
	if err := s.forget(ctx); err != nil {
		return err
	}
	addr := s.pods[other][1][family]
	const each = 20 * time.Millisecond
	probed, err := s.lab.StartProbe(ctx, s.others[0],
		probe.Spec{Kind: probe.UDPFlow, Target: netip.AddrPortFrom(addr, echoTarget)},
		probe.Spec{Kind: probe.TCPNew, Target: netip.AddrPortFrom(addr, httpTarget), Interval: each})
	if err != nil {
		return err
	}
	var sent lab.Flooded
	u, err := s.during(ctx, func() (err error) {
		if len(target) == 0 {
			return s.idle(ctx)
		}
		sent, err = s.lab.Flood(ctx, target[0], s.floodCount, s.floodRate)
		return err
	})
	results, finish := probed.Finish()
	if err != nil {
		return err
	}
	if finish != nil {
		return finish
	}
	figure.Sent, figure.Seconds = sent.Sent, round(sent.Seconds, 3)
	figure.Upcalls, figure.LostUpcalls, figure.Megaflows = u.gateway.upcalls, u.gateway.lost, u.gateway.flows
	figure.CPU, figure.CPUAll = u.cpu.Seconds(), u.cpuAll.Seconds()
	if figure.FlowLimit, err = s.flowLimit(ctx); err != nil {
		return err
	}
	figure.Packets, figure.New = delaysOf(results[0]), delaysOf(results[1])
	return s.forget(ctx)
}

// flowLimit returns how many datapath flows the gateway keeps at present.
func (s *site) flowLimit(ctx context.Context) (int, error) {
	show, err := s.lab.Appctl(ctx, gateway, "upcall/show")
	if err != nil {
		return 0, err
	}
	return parseFlowLimit(show)
}

// idle waits as long as the loads of a section run.
func (s *site) idle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(s.floodCount) * time.Second / time.Duration(max(1, s.floodRate)) / 2):
		return nil
	}
}

// forget removes the datapath flows and connections of all nodes, so that a flood starts as the one before it.
func (s *site) forget(ctx context.Context) error {
	if err := s.purge(ctx); err != nil {
		return err
	}
	for _, n := range s.lab.Nodes {
		if _, err := s.lab.Appctl(ctx, n.Name, "dpctl/flush-conntrack"); err != nil {
			return err
		}
	}
	return nil
}
