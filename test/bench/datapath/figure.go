// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/load"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// paths has a value for each of the paths to the same pods.
type paths[T any] struct {
	// VIP is the address of the Service, by OVN's rows of this project.
	VIP T `json:"vip"`
	// NodePort is the same Service's NodePort on the gateway, by those of OVN-Kubernetes.
	NodePort T `json:"node_port"`
	// Pod is the pods' own addresses, from a pod on the gateway.
	Pod T `json:"pod"`
}

// at returns the value of a path by its number.
func (p *paths[T]) at(i int) *T { return []*T{&p.VIP, &p.NodePort, &p.Pod}[i] }

// rateFigure is a figure of sustained load.
type rateFigure struct {
	Section string `json:"section"`
	Family  string `json:"family"`
	// Backend says where the pods are: on the gateway, or elsewhere.
	Backend string `json:"backend"`
	// Unit is that of PerSecond, CPUUnit that of CPU.
	Unit    string          `json:"unit"`
	CPUUnit string          `json:"cpu_unit"`
	Paths   paths[pathRate] `json:"paths"`
	// Rounds are the ratios of the VIP to the NodePort in each round, and Ratio their median: what else the machine does
	// may double or halve one of them. CPURatio is the ratio of CPU.
	Rounds   []float64 `json:"vip_to_node_port_rounds"`
	Ratio    float64   `json:"vip_to_node_port"`
	CPURatio float64   `json:"vip_to_node_port_cpu"`
}

// pathRate is what a path carried.
type pathRate struct {
	PerSecond float64 `json:"per_second"`
	// CPU is the CPU time of ovs-vswitchd in seconds per CPUUnit: of the gateway, and of all nodes.
	CPU    float64 `json:"gateway_cpu_s"`
	CPUAll float64 `json:"all_cpu_s"`
	// Recirculations is how often a packet recirculated on the gateway, on average.
	Recirculations float64 `json:"recirculations_per_packet"`
	// Failed counts requests without an answer. Error is one of the reasons.
	Failed int    `json:"failed,omitempty"`
	Error  string `json:"error,omitempty"`
}

// pathTotal is the sum of what a path did in several rounds.
type pathTotal struct {
	load.Result
	usage
	rounds []float64 // units per second
}

// add adds a round.
func (t *pathTotal) add(r load.Result, u usage) {
	t.rounds = append(t.rounds, float64(r.Units)/r.Seconds)
	t.Units += r.Units
	t.Seconds += r.Seconds
	t.Failed += r.Failed
	if t.Error == "" {
		t.Error = r.Error
	}
	t.cpu += u.cpu
	t.cpuAll += u.cpuAll
	t.gateway = t.gateway.plus(u.gateway)
}

// rate returns the figures of a path. perUnit is how many units of the rate an answered unit is, and perCPUUnit how
// many answered units a unit of CPU is.
func (t pathTotal) rate(perUnit, perCPUUnit float64) pathRate {
	c := pathRate{Failed: t.Failed, Error: t.Error}
	if t.Units > 0 {
		c.PerSecond = round(float64(t.Units)*perUnit/t.Seconds, 4)
		c.CPU = round(t.cpu.Seconds()*perCPUUnit/float64(t.Units), 3)
		c.CPUAll = round(t.cpuAll.Seconds()*perCPUUnit/float64(t.Units), 3)
	}
	if t.gateway.packets > 0 {
		c.Recirculations = round(float64(t.gateway.recirculations())/float64(t.gateway.packets), 3)
	}
	return c
}

// newRateFigure adds the figures of the paths, which had the same number of rounds.
func newRateFigure(r rateFigure, totals []pathTotal, perUnit, perCPUUnit float64) rateFigure {
	for i, t := range totals {
		*r.Paths.at(i) = t.rate(perUnit, perCPUUnit)
	}
	vip, nodePort := totals[0].rounds, totals[1].rounds
	for i := range vip {
		r.Rounds = append(r.Rounds, ratio(vip[i], nodePort[i]))
	}
	r.Ratio = median(r.Rounds)
	r.CPURatio = ratio(r.Paths.VIP.CPU, r.Paths.NodePort.CPU)
	return r
}

// median returns the middle value, the lower one of an even number, or zero if there is none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

// ratio returns a to b, or zero if there is none.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return round(a/b, 3)
}

// round rounds to a number of significant digits.
func round(v float64, digits int) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

const rateHeader = "section      family backend          VIP NodePort      pod unit    VIP:NodePort | " +
	"gateway's CPU: VIP NodePort      pod s per  ratio | recirculations per packet"

func (r rateFigure) String() string {
	line := fmt.Sprintf("%-12s %-6s %-9s %9.4g %8.4g %8.4g %-7s %12.2f | %18.3g %8.3g %8.3g %-5s %5.2f | "+
		"%.2f %.2f %.2f", r.Section, r.Family,
		r.Backend, r.Paths.VIP.PerSecond, r.Paths.NodePort.PerSecond, r.Paths.Pod.PerSecond, r.Unit, r.Ratio,
		r.Paths.VIP.CPU, r.Paths.NodePort.CPU, r.Paths.Pod.CPU, r.CPUUnit, r.CPURatio,
		r.Paths.VIP.Recirculations, r.Paths.NodePort.Recirculations, r.Paths.Pod.Recirculations)
	if v, n, p := r.Paths.VIP.Failed, r.Paths.NodePort.Failed, r.Paths.Pod.Failed; v+n+p > 0 {
		line += fmt.Sprintf("; failed %d, %d, %d", v, n, p)
	}
	return line
}

// connectionFigure is a figure of connections that were opened one after the other. At the start there are no datapath
// flows.
type connectionFigure struct {
	// Backends describes the pods of the Service, and its annotation.
	Backends string                `json:"backends"`
	Family   string                `json:"family"`
	Paths    paths[connectionCost] `json:"paths"`
	// Ratio is that of upcalls of the gateway for the VIP to those for the NodePort.
	Ratio float64 `json:"vip_to_node_port"`
}

// connectionCost is what the Open vSwitch of the gateway, and that of the pods' node, counted.
type connectionCost struct {
	Connections int `json:"connections"`
	Failed      int `json:"failed,omitempty"`
	// Upcalls and Megaflows are those of the gateway during the connections.
	Upcalls   int `json:"upcalls"`
	Megaflows int `json:"megaflows"`
	// Recirculations and Packets are averages per connection.
	Recirculations float64 `json:"recirculations_per_connection"`
	Packets        float64 `json:"packets_per_connection"`
	// Pods has the same counters of the pods' node, if that is not the gateway.
	PodsUpcalls        int     `json:"pods_upcalls"`
	PodsRecirculations float64 `json:"pods_recirculations_per_connection"`
}

// costOf returns the figures of connections.
func costOf(r load.Result, gateway, pods counters) connectionCost {
	n := float64(max(r.Units, 1))
	return connectionCost{Connections: r.Units, Failed: r.Failed, Upcalls: gateway.upcalls, Megaflows: gateway.flows,
		Recirculations: round(float64(gateway.recirculations())/n, 3), Packets: round(float64(gateway.packets)/n, 3),
		PodsUpcalls: pods.upcalls, PodsRecirculations: round(float64(pods.recirculations())/n, 3)}
}

const connectionHeader = "new connections           family  upcalls: VIP NodePort  pod  VIP:NodePort | " +
	"megaflows: VIP NodePort  pod | recirculations each: VIP NodePort  pod"

func (o connectionFigure) String() string {
	v, n, p := o.Paths.VIP, o.Paths.NodePort, o.Paths.Pod
	return fmt.Sprintf("%3d, %-20s %-6s %13d %8d %4d %13.1f | %14d %8d %4d | %24.3g %8.3g %4.3g", v.Connections,
		o.Backends, o.Family, v.Upcalls, n.Upcalls, p.Upcalls, o.Ratio, v.Megaflows, n.Megaflows, p.Megaflows,
		v.Recirculations, n.Recirculations, p.Recirculations)
}

// floodFigure is a figure of what another pod of the gateway notices while a target is flooded.
type floodFigure struct {
	// Target is "none", or what was flooded.
	Target string `json:"target"`
	Family string `json:"family"`
	// Sent and Seconds describe the flood.
	Sent    int     `json:"sent"`
	Seconds float64 `json:"seconds"`
	// Upcalls, LostUpcalls, Megaflows and CPU (in seconds) are those of the gateway. CPUAll is that of all nodes.
	Upcalls     int     `json:"upcalls"`
	LostUpcalls int     `json:"lost_upcalls"`
	Megaflows   int     `json:"megaflows"`
	CPU         float64 `json:"gateway_cpu_s"`
	CPUAll      float64 `json:"all_cpu_s"`
	// FlowLimit is how many megaflows the gateway keeps (upcall/show). It grows after ovs-vswitchd has started.
	FlowLimit int `json:"flow_limit"`
	// Packets is a flow of the other pod that existed before, New are its new connections.
	Packets delays `json:"established"`
	New     delays `json:"new"`
}

// delays are those of a client of the other pod.
type delays struct {
	Sent  int     `json:"sent"`
	Lost  int     `json:"lost"`
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
	GapMS float64 `json:"gap_ms"`
}

// delaysOf returns the delays of a stream.
func delaysOf(r probe.Result) delays {
	return delays{Sent: r.Sent, Lost: r.Lost, P50MS: round(r.P50.Seconds()*1e3, 3), P99MS: round(r.P99.Seconds()*1e3, 3),
		GapMS: round(r.Gap.Seconds()*1e3, 3)}
}

func (d delays) String() string {
	return fmt.Sprintf("%4d of %4d lost, p50 %6.3g p99 %6.3g ms", d.Lost, d.Sent, d.P50MS, d.P99MS)
}

const floodHeader = "flood of                family sent/s upcalls lost flows  limit CPU s | " +
	"established flow of another pod            | new connections of another pod"

func (f floodFigure) String() string {
	perSecond := 0.0
	if f.Seconds > 0 {
		perSecond = float64(f.Sent) / f.Seconds
	}
	return fmt.Sprintf("%-23s %-6s %6.0f %7d %4d %5d %6d %5.3g | %s | %s", f.Target, f.Family, perSecond, f.Upcalls,
		f.LostUpcalls, f.Megaflows, f.FlowLimit, f.CPU, f.Packets, f.New)
}
