// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// DrainTime is the time between adding the community GRACEFUL_SHUTDOWN to the routes of a node and withdrawing them. An
// object is written within 3 s, frr-k8s waits for 3 s and then takes about 2 s to reload FRR, which applies changes of
// route maps after 5 s (bgp route-map delay-timer). Routers need a moment, too.
const DrainTime = 15 * time.Second

// Drains knows since when nodes drain. Routes of a node that drains are kept for DrainTime if the node is in an object,
// and never added: a new leader must not announce again what was withdrawn.
type Drains struct{ since map[string]time.Time }

// update updates the nodes that drain; all if BGP is off. It returns when the next of them is to withdraw its routes.
func (d *Drains) update(w *world.Snapshot, off bool) time.Time {
	now := map[string]time.Time{}
	var due time.Time
	for _, n := range w.Nodes {
		if n.Draining == "" && !off {
			continue
		}
		since, was := d.since[n.Name]
		if !was {
			since = w.Now
		}
		now[n.Name] = since
		if at := since.Add(DrainTime); w.Now.Before(at) {
			due = world.Earliest(due, at)
		}
	}
	d.since = now
	return due
}

func (d *Drains) isDraining(node string) bool {
	_, is := d.since[node]
	return is
}

func (d *Drains) withdrawn(node string, now time.Time) bool {
	since, is := d.since[node]
	return is && !now.Before(since.Add(DrainTime))
}
