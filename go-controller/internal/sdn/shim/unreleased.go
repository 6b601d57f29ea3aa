// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
)

// unreleased are addresses that we had assigned to one node, and whose release it has not confirmed although another
// node may have taken them: it was lost, or did not answer in time. Until it confirms that, both may answer for them.
type unreleased struct {
	// version is the version of the Node that has none of them.
	version string
	addrs   map[netip.Addr]bool
}

// neglect records a release that is not awaited any more although it was not confirmed. d.mu must be held.
func (d *Dataplane) neglect(r release) {
	u := d.unreleased[r.node]
	if u == nil {
		u = &unreleased{addrs: map[netip.Addr]bool{}}
		d.unreleased[r.node] = u
	}
	u.addrs[r.addr] = true
	if revision.Newer(r.unconfirmed, u.version) {
		u.version = r.unconfirmed
	}
}

// askUnreleased has a node asked for the releases that it has not confirmed. d.mu must be held.
func (d *Dataplane) askUnreleased(node string) {
	if u := d.unreleased[node]; u != nil {
		d.confirmations.ask(node, u.version, time.Now())
		d.ask()
	}
}

// releasedLate has the addresses announced again whose late release a node confirms with the answer about a version:
// clients may have resolved that node after the present one had finished its announcements. It returns the addresses
// whose Services must be applied for this. d.mu must be held.
func (d *Dataplane) releasedLate(node, version string, failed map[netip.Addr]string) (changed []at) {
	u := d.unreleased[node]
	if u == nil || revision.Newer(u.version, version) {
		return nil
	}
	for a := range u.addrs {
		if failed[a] != "" {
			continue
		}
		delete(u.addrs, a)
		holder := d.placed[a].node
		if h, has := d.have[holder][a]; has && holder != node {
			d.stale[a] = h.Generation
			changed = append(changed, at{holder, a})
		}
	}
	if len(u.addrs) == 0 {
		delete(d.unreleased, node)
	}
	return changed
}

// renew replaces the generations in d.stale in the desired assignment. d.mu must be held.
func (d *Dataplane) renew() {
	for a, generation := range d.stale {
		node := d.placed[a].node
		h, wanted := d.want[node][a]
		if !wanted || h.Generation != generation {
			delete(d.stale, a)
			continue
		}
		h.Generation = max(1, generation+1)
		d.want[node][a] = h
	}
}
