// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/probe"
)

// figure holds the effect of an event on the clients of one family, over all repeats.
type figure struct {
	Event  string `json:"event"`
	Family string `json:"family"`
	// VIPs is the number of Services on the gateway. Service web has one address per family and two ports. Each other
	// Service has one address and one port.
	VIPs int `json:"vips"`
	// GapsMS has, per repeat, the longest time in which any UDP flow had no answer. A flow sends a request every 10 ms.
	GapsMS []float64 `json:"gaps_ms"`
	// FlowGapsMS has, per repeat, the gap of the median flow: what one client is likely to notice.
	FlowGapsMS   []float64 `json:"flow_gaps_ms"`
	FlowMedianMS float64   `json:"flow_gap_median_ms"`
	// MedianMS, P95MS and MaxMS are statistics of GapsMS.
	MedianMS float64 `json:"gap_median_ms"`
	P95MS    float64 `json:"gap_p95_ms"`
	MaxMS    float64 `json:"gap_max_ms"`
	// Connections is the number of TCP connections per repeat. Survivors is the number that survived in the worst
	// repeat.
	Connections int `json:"tcp_connections"`
	Survivors   int `json:"tcp_survivors_min"`
}

func (f figure) String() string {
	return fmt.Sprintf("%-9s %s %5d VIPs: gap of the median flow %.0f, of the worst: median %.0f p95 %.0f max %.0f ms; "+
		"%d of %d connections survived the worst of %d",
		f.Event, f.Family, f.VIPs, f.FlowMedianMS, f.MedianMS, f.P95MS, f.MaxMS, f.Survivors, f.Connections, len(f.GapsMS))
}

// add adds the results of one repeat.
func (f *figure) add(results []probe.Result) {
	var gaps []float64
	alive, all := 0, 0
	for _, r := range results {
		for _, flow := range r.Flows {
			if r.Spec.Kind == probe.UDPFlow {
				gaps = append(gaps, math.Round(flow.Gap.Seconds()*1e4)/10)
				continue
			}
			all++
			if flow.Broken == "" {
				alive++
			}
		}
	}
	if len(f.GapsMS) == 0 || alive < f.Survivors {
		f.Survivors = alive
	}
	f.Connections = all
	f.GapsMS = append(f.GapsMS, quantile(gaps, 1))
	f.FlowGapsMS = append(f.FlowGapsMS, quantile(gaps, 0.5))
	f.FlowMedianMS = quantile(f.FlowGapsMS, 0.5)
	f.MedianMS, f.P95MS, f.MaxMS = quantile(f.GapsMS, 0.5), quantile(f.GapsMS, 0.95), quantile(f.GapsMS, 1)
}

// quantile returns the smallest value that at least the fraction p of the values does not exceed. values must not be
// empty.
func quantile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}
