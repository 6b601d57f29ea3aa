// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Reasons why a reported conflict is ignored. They are values of a metric label.
const (
	// IgnoredNotAsked means that the node was not asked to probe the address.
	IgnoredNotAsked = "not_asked"
	// IgnoredNotGateway means that the node is no gateway of an L2Domain with the address, which the report says that it
	// announces.
	IgnoredNotGateway = "not_gateway"
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
// address, for the current probe request, and those on announced addresses (acceptAnnounced). All nodes write their
// reports with the same account, and any node may be compromised. Replies from our own gateways are not conflicts: a
// gateway may still answer for the Service that previously had the address.
func (p *probing) accept(w *world.Snapshot, l *place.Layout) *world.Snapshot {
	out := *w
	out.Conflicts = map[netip.Addr]world.Conflict{}
	before := p.ignored
	p.overdue = false
	p.ignored, p.newlyIgnored = map[IgnoredReport]bool{}, nil
	var ours map[string]bool
	if len(w.Reports)+len(w.AnnouncedReports) > 0 {
		ours = ownMACs(w, l)
	}
	for node, reports := range w.Reports {
		for a, c := range reports {
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
	p.acceptLate(&out)
	p.acceptAnnounced(&out, l, ours)
	for r := range p.ignored {
		if !before[r] {
			p.newlyIgnored = append(p.newlyIgnored, r)
		}
	}
	for a, is := range p.requests {
		if _, answered := out.Conflicts[a]; is.suspect && !answered && (!is.unread || !w.Announced[a]) {
			out.Conflicts[a] = world.Conflict{}
		}
	}
	return &out
}

// acceptLate records late replies. The first one counts until the conflict ends, as with acceptAnnounced: a host that
// answers now and then, or from changing MAC addresses, must not cause a write of a status each time. Of a guard, at
// most maxLatePerGuard count, because each address stays in its Lease: a host may answer for all. The guards of the
// gateways that announce the others look for it anyway.
func (p *probing) acceptLate(w *world.Snapshot) {
	late := p.lateByGuard(w.Now)
	for _, a := range p.announcedRequests() {
		is := p.requests[a]
		c, reported := w.Conflicts[a]
		if reported && !is.hasLateConflict(w.Now) {
			if late[is.guard] >= maxLatePerGuard {
				delete(w.Conflicts, a)
				is.late = announcedConflict{}
				p.requests[a] = is
				continue
			}
			late[is.guard]++
			is.late.Conflict = c
		}
		if reported {
			is.late.end = time.Time{}
		} else if is.isReported() {
			is.late.end = w.Now.Add(announcedConflictTime)
			is.expiry = is.late.end
		}
		if is.hasLateConflict(w.Now) {
			w.Conflicts[a] = is.late.Conflict
		} else {
			is.late = announcedConflict{}
		}
		p.requests[a] = is
	}
}

// isReported reports whether the last pass saw a late reply.
func (p *probe) isReported() bool {
	return p.late.Conflict != (world.Conflict{}) && p.late.end.IsZero()
}

// hasLateConflict reports whether a late reply counts: one is reported now, or was not long ago.
func (p *probe) hasLateConflict(now time.Time) bool {
	return p.isReported() || now.Before(p.late.end)
}

// announcedRequests returns the requested addresses that are announced, in order.
func (p *probing) announcedRequests() []netip.Addr {
	var list []netip.Addr
	for a, is := range p.requests {
		if is.announced {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// lateByGuard returns the number of late conflicts of each guard that count.
func (p *probing) lateByGuard(now time.Time) map[string]int {
	late := map[string]int{}
	for _, is := range p.requests {
		if is.announced && is.hasLateConflict(now) {
			late[is.guard]++
		}
	}
	return late
}

// announcedConflictTime is how long a conflict on an announced address that is no longer reported still counts. The
// guard of a gateway that takes over needs that long to report it, and a host, or a node, that answers or reports now
// and then causes few writes of statuses.
const announcedConflictTime = time.Minute

// announcedConflict is a conflict on an announced address.
type announcedConflict struct {
	world.Conflict
	// end is when it no longer counts. It is zero while it is reported.
	end time.Time
}

// acceptAnnounced adds the conflicts on announced addresses that gateways of their L2Domains report. Such an address
// stays announced: a host on the segment, or a node, must not be able to withdraw it. The first report counts until the
// conflict ends, because others may change at will.
func (p *probing) acceptAnnounced(w *world.Snapshot, l *place.Layout, ours map[string]bool) {
	before := p.announced
	p.announced = nil
	if len(before)+len(w.AnnouncedReports) == 0 {
		return
	}
	shown := map[netip.Addr]bool{}
	for _, s := range w.Services {
		for _, a := range slices.Concat(s.Shown(), s.ExternalIPs) {
			is, known := p.requests[a]
			shown[a] = !known || is.announced || is.unread
		}
	}
	p.announced = map[netip.Addr]announcedConflict{}
	for _, node := range slices.Sorted(maps.Keys(w.AnnouncedReports)) {
		for a, c := range w.AnnouncedReports[node] {
			_, known := p.announced[a]
			switch {
			case ours[c.MAC] || !shown[a] || known:
			case !mayAnnounce(l, node, a):
				p.ignored[IgnoredReport{node, a, c.MAC, IgnoredNotGateway}] = true
			default:
				is := announcedConflict{Conflict: c}
				if last, was := before[a]; was {
					is.Conflict = last.Conflict
				}
				p.announced[a] = is
			}
		}
	}
	for a, last := range before {
		if last.end.IsZero() {
			last.end = w.Now.Add(announcedConflictTime)
		}
		if _, reported := p.announced[a]; !reported && shown[a] && w.Now.Before(last.end) && hasGateway(l, a) {
			p.announced[a] = last
		}
	}
	for a, is := range p.announced {
		if _, known := w.Conflicts[a]; !known {
			w.Conflicts[a] = is.Conflict
		}
	}
}

// isAnnouncedConflict reports whether a guard reports another host that has an address, as one that its node announces.
func isAnnouncedConflict(w *world.Snapshot, a netip.Addr) bool {
	for _, reports := range w.AnnouncedReports {
		if _, reported := reports[a]; reported {
			return true
		}
	}
	return false
}

// mayAnnounce reports whether a node is a gateway of an L2Domain with an address.
func mayAnnounce(l *place.Layout, node string, a netip.Addr) bool {
	return slices.ContainsFunc(l.Domains, func(d *place.Domain) bool {
		return d.IsGateway(node) && slices.ContainsFunc(d.Spec.Subnets, func(s world.Subnet) bool {
			return s.Prefix.Contains(a)
		})
	})
}

// hasGateway reports whether an L2Domain with an address has a gateway. While none has, nothing announces the address,
// and its status must not say AddressConflict: that would be read as the reason for which it is withheld.
func hasGateway(l *place.Layout, a netip.Addr) bool {
	return slices.ContainsFunc(l.Domains, func(d *place.Domain) bool {
		return slices.ContainsFunc(d.Shards, func(s place.Shard) bool { return len(s.Gateways) > 0 }) &&
			slices.ContainsFunc(d.Spec.Subnets, func(s world.Subnet) bool { return s.Prefix.Contains(a) })
	})
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
