// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
)

// northdInterval is the time between two probes of ovn-northd.
const northdInterval = 3 * time.Second

// northd observes ovn-northd, which passes what is written to the northbound database on to the southbound one. Without
// it the database accepts changes that never take effect. The zero value has observed nothing.
type northd struct {
	// observed is true if ovn-northd has been observed on this node: its control socket may be elsewhere.
	observed bool
	// fault is what is wrong with it now, nil for nothing.
	fault atomic.Pointer[string]
}

// observe records a heartbeat, and for how long nothing has been translated although changes wait. It returns true if
// the fault has changed.
func (n *northd) observe(h unixctl.ProbeResult, waiting time.Duration) bool {
	n.observed = n.observed || h != unixctl.Absent
	var fault string
	switch {
	case h == unixctl.Silent:
		fault = "ovn-northd does not answer"
	case h < unixctl.Silent && n.observed:
		fault = "ovn-northd is not running"
	case waiting >= northdInterval:
		fault = "ovn-northd does not translate changes"
	}
	changed := fault != n.problem()
	n.fault.Store(&fault)
	return changed
}

// problem returns what is wrong with ovn-northd, or an empty string. It may be called from any goroutine.
func (n *northd) problem() string {
	if fault := n.fault.Load(); fault != nil {
		return *fault
	}
	return ""
}

// watchNorthd probes ovn-northd until the context ends.
func (a *Agent) watchNorthd(ctx context.Context) {
	prober := unixctl.NewProber(filepath.Join(a.options.RunDir, "ovn-northd.*.ctl"))
	tick := time.NewTicker(northdInterval)
	defer tick.Stop()
	for {
		var waiting time.Duration
		if since := a.dataplane.Stalled(); !since.IsZero() {
			waiting = time.Since(since)
		}
		if h := prober.Check(ctx); ctx.Err() == nil && a.northd.observe(h, waiting) {
			a.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
