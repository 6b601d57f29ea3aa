// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Why a reported conflict doesn't count; values of a metric's label.
const (
	// ignoredNotAsked: the node was not asked about the address.
	ignoredNotAsked = "not_asked"
	// ignoredWrongProbe: it answers another question than the one that stands.
	ignoredWrongProbe = "wrong_probe"
)

// ignoredReport is a reported conflict that doesn't count.
type ignoredReport struct {
	node   string
	addr   netip.Addr
	mac    string
	reason string
}

// accept returns the snapshot with the reported conflicts that count: answers of the nodes that were asked, to
// the questions that they were asked. All nodes write their reports with one account, and any of them may be
// compromised. Answers of our own gateways are no conflicts: one may still answer for the Service that had the
// address before.
func (p *probation) accept(w *world.Snapshot, l *place.Layout) *world.Snapshot {
	out := *w
	out.Conflicts = map[netip.Addr]world.Conflict{}
	before := p.ignored
	p.ignored, p.newlyIgnored = map[ignoredReport]bool{}, nil
	var ours map[string]bool
	for node, reports := range w.Reports {
		for a, c := range reports {
			if ours == nil {
				ours = ownMACs(w, l)
			}
			is, asked := p.asked[a]
			switch {
			case ours[c.MAC]:
			case !asked || is.guard != node || is.id == "" || is.forgotten(w.Now):
				p.ignored[ignoredReport{node, a, c.MAC, ignoredNotAsked}] = true
			case is.id != c.Probe:
				p.ignored[ignoredReport{node, a, c.MAC, ignoredWrongProbe}] = true
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
	return &out
}

// acceptLate takes note of late answers. One that was reported a moment ago still counts: the question is asked
// again because of it, and its guard begins anew.
func (p *probation) acceptLate(w *world.Snapshot) {
	for a, is := range p.asked {
		if !is.announced {
			continue
		}
		if c, reported := w.Conflicts[a]; reported {
			is.late, is.answered, is.reported, is.forget = c, w.Now, true, w.Now.Add(lateTime)
		} else if is.reported = false; is.warns(w.Now) {
			w.Conflicts[a] = is.late
		} else {
			is.late, is.answered = world.Conflict{}, time.Time{}
		}
		p.asked[a] = is
	}
}

func ownMACs(w *world.Snapshot, l *place.Layout) map[string]bool {
	ours := map[string]bool{}
	for _, d := range l.Domains {
		for _, shard := range d.Shards {
			ours[rows.PortMAC(w.Cluster.ID, shard.ID)] = true
		}
	}
	return ours
}
