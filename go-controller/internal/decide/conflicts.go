// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Reasons why a reported conflict is ignored. They are values of a metric label.
const (
	// IgnoredNotAsked means that the node was not asked to probe the address.
	IgnoredNotAsked = "not_asked"
	// IgnoredWrongProbe means that the report refers to a probe request other than the current one.
	IgnoredWrongProbe = "wrong_probe"
)

// IgnoredReport is a reported conflict that is ignored.
type IgnoredReport struct {
	Node   string
	Addr   netip.Addr
	MAC    string
	Reason string
}

// accept returns the snapshot with the accepted conflicts only: those reported by the node that was asked to probe the
// address, for the current probe request. All nodes write their reports with the same account, and any node may be
// compromised. Replies from our own gateways are not conflicts: a gateway may still answer for the Service that
// previously had the address.
func (p *probing) accept(w *world.Snapshot, l *place.Layout) *world.Snapshot {
	out := *w
	out.Conflicts = map[netip.Addr]world.Conflict{}
	before := p.ignored
	p.ignored, p.newlyIgnored = map[IgnoredReport]bool{}, nil
	var ours map[string]bool
	for node, reports := range w.Reports {
		for a, c := range reports {
			if ours == nil {
				ours = ownMACs(w, l)
			}
			is, known := p.requests[a]
			switch {
			case ours[c.MAC]:
			case !known || is.guard != node || is.id == "" || is.isExpired(w.Now):
				p.ignored[IgnoredReport{node, a, c.MAC, IgnoredNotAsked}] = true
			case is.id != c.Probe:
				p.ignored[IgnoredReport{node, a, c.MAC, IgnoredWrongProbe}] = true
			default:
				out.Conflicts[a] = c
			}
		}
	}
	for r := range p.ignored {
		if !before[r] {
			p.newlyIgnored = append(p.newlyIgnored, r)
		}
	}
	p.acceptLate(&out)
	for a, is := range p.requests {
		if _, answered := out.Conflicts[a]; is.suspect && !answered {
			out.Conflicts[a] = world.Conflict{}
		}
	}
	return &out
}

// acceptLate records late replies. A reply that was reported a moment ago still counts, because it causes a new probe
// request and the guard starts over.
func (p *probing) acceptLate(w *world.Snapshot) {
	for a, is := range p.requests {
		if !is.announced {
			continue
		}
		if c, reported := w.Conflicts[a]; reported {
			is.lateConflict, is.answered, is.reported, is.expiry = c, w.Now, true, w.Now.Add(lateConflictWindow)
		} else if is.reported = false; is.hasLateConflict(w.Now) {
			w.Conflicts[a] = is.lateConflict
		} else {
			is.lateConflict, is.answered = world.Conflict{}, time.Time{}
		}
		p.requests[a] = is
	}
}

func ownMACs(w *world.Snapshot, l *place.Layout) map[string]bool {
	ours := map[string]bool{}
	for _, d := range l.Domains {
		for _, shard := range d.Shards {
			ours[shard.ID.SegmentMAC(w.Cluster.ID)] = true
		}
	}
	return ours
}
