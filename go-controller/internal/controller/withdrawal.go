// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// withdrawLatest is how long addresses wait for the nodes to report that their BGP sessions are closed, and that their
// zones claim no shard. A node that is gone never reports it. No Service is allocated these addresses during that time.
const withdrawLatest = 15 * time.Second

// withdrawPause is the time between two checks whether any address is still announced.
const withdrawPause = 500 * time.Millisecond

// withdrawal makes Services keep their addresses until they are no longer announced.
type withdrawal struct {
	// since is when everything was disabled, or zero if it is not.
	since time.Time
	// done is set once nothing is announced. It stays set until the mode is no longer Disabled.
	done bool
}

// deferRelease suppresses the release of addresses in a snapshot as long as any address may be announced. It returns
// the time of the next check, or the zero time if no check is needed.
func (wd *withdrawal) deferRelease(w *world.Snapshot, known report.Observed, absent bool) time.Time {
	s := &w.Cluster.ModeSetting
	if s.Mode != world.Disabled {
		*wd = withdrawal{}
		return time.Time{}
	}
	if wd.since.IsZero() {
		wd.since = w.Now
	}
	rows := !absent && (!known.Synced || !known.Configured || known.TopologyError != nil || len(known.Programmed) > 0 ||
		wd.since.Equal(w.Now))
	nodes := (mayAdvertise(w) || zoneClaims(w)) && w.Now.Before(wd.since.Add(withdrawLatest))
	wd.done = wd.done || !rows && !nodes
	if wd.done || !s.Release {
		return time.Time{}
	}
	s.Release = false
	return w.Now.Add(withdrawPause)
}

// mayAdvertise reports whether any node may have a BGP session of ours, or an object that makes FRR advertise routes. A
// node that no longer reports may still have the sessions that it reported.
func mayAdvertise(w *world.Snapshot) bool {
	if w.FRR.Ours() {
		return true
	}
	for _, peers := range w.Sessions {
		for _, s := range peers {
			if (s.Established || s.Unknown) && !s.ByFRR { // A session of FRR may be that of others, too.
				return true
			}
		}
	}
	return false
}

// zoneClaims reports whether the agent of any zone reports that its node claims a shard: with interconnect, the rows
// are in the databases of the zones, of which the controller knows nothing else. What a silent agent reported last does
// not count: when it changes is unknown.
func zoneClaims(w *world.Snapshot) bool {
	for _, n := range w.Nodes {
		if n.Agent != nil && n.HasOwnZone() && !n.Agent.Silent && len(n.Agent.Claims) > 0 {
			return true
		}
	}
	return false
}
