// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// amendPass applies changes of single Services. It returns false if a full pass is needed. Then it applies only what
// need not wait for that pass, such as new endpoints of other Services, and leaves the statuses to it.
func (c *Controller) amendPass() bool {
	if c.last == nil {
		return false
	}
	changes := c.facts.Changes()
	topology := c.last.Topology
	c.last.World.Now = time.Now() // nothing else has changed since the snapshot
	amended := c.state.AmendAll(c.last.Decision, changes.Services, c.fullPassDue.Load() || changes.Others)
	if !amended.Incomplete {
		c.state.AmendProbed(c.last.Decision, changes.Probed, &amended)
	}
	if c.runner != nil {
		if c.last.Topology != topology && c.synced() {
			c.runner.Set(c.last.Topology, c.last.Plans, nil)
		}
		c.runner.Change(amended.Plans)
	}
	c.putBack(amended.Later)
	if amended.Incomplete {
		c.fullPassDue.Store(true) // it contains the changes that were taken and not applied
		return false
	}
	if c.last.Topology != topology && c.last.Layout.Interconnect {
		c.domains.Set(c.last.Domains()) // Zones read the shards there.
	}
	if amended.Probes {
		c.probeWriter.Set(c.last.Probes)
		c.setWakeTimer()
	}
	reported := c.takeReported()
	for _, key := range reported {
		c.last.SetResult(key, c.runner.Result(key))
	}
	reported = append(reported, c.zones.ObserveReports(c.last.World, changes.Applied, reported)...)
	statuses := make(map[world.Key]*status.Service, len(changes.Services)+len(reported))
	for key, change := range changes.Services {
		if _, later := amended.Later[key]; later {
			continue
		}
		statuses[key] = nil
		if change.Is != nil {
			statuses[key] = c.last.Service(change.Is)
		}
	}
	for _, key := range reported {
		if _, done := statuses[key]; done {
			continue
		}
		if s, ok := c.state.Planned(key); ok {
			statuses[key] = c.last.Service(s)
		}
	}
	c.services.Change(statuses)
	return true
}

// putBack leaves changes to the next amendment.
func (c *Controller) putBack(later map[world.Key]world.Change) {
	if len(later) > 0 {
		c.facts.PutBack(later)
		c.wakeups.wake()
	}
}
