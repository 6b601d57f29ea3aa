// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// DomainMove is the request that moves the shards of a Service in one L2Domain to a node. Shards that the node has
// already are not part of it.
type DomainMove struct {
	Domain string
	// Request is the value of v1alpha1.AnnotationMove.
	Request string
	Shards  []ShardMove
}

// ShardMove is a shard that moves. Services are lines "NAMESPACE/NAME ADDRESS, ..." of all that have addresses of the
// shard, sorted.
type ShardMove struct {
	Index    int
	From, To string
	Services []string
}

// Move returns the requests that move all shards of a Service to a node, one per L2Domain, in order of their names.
// There are none if the node has them already. id distinguishes the requests from earlier ones. If the Service can't be
// moved, Move returns the reason instead.
func Move(o *objects.Objects, key world.Key, node, id string, now time.Time) (moves []DomainMove, reason string) {
	if objects.Named(o.Nodes, node) == nil {
		return nil, fmt.Sprintf("node %q does not exist", node)
	}
	was := decideOn(o, o, now)
	used, reason := was.shardsOf(key)
	if reason != "" {
		return nil, reason
	}
	after := o.Clone()
	for i, d := range o.Domains {
		m := DomainMove{Domain: d.Name}
		r := v1alpha1.MoveRequest{Node: node, ID: id}
		for _, shard := range used {
			if shard.Domain != d.Name {
				continue
			}
			at := slices.IndexFunc(d.Status.Shards, func(s v1alpha1.ShardStatus) bool { return int(s.Index) == shard.Index })
			if at < 0 {
				return nil, fmt.Sprintf("L2Domain %s: its status does not have shard %d yet", d.Name, shard.Index)
			}
			if s := d.Status.Shards[at]; s.Active != node || slices.Index(s.Gateways, node) != 0 {
				m.Shards = append(m.Shards, ShardMove{shard.Index, s.Active, node, was.servicesOf(shard)})
				r.Shards = append(r.Shards, s.Index)
			}
		}
		if len(m.Shards) == 0 {
			continue
		}
		if busy := MoveInProgress(d); busy != "" {
			return nil, busy
		}
		text, err := json.Marshal(r)
		if err != nil {
			return nil, err.Error()
		}
		m.Request = string(text)
		moves = append(moves, m)
		after.Domains[i] = requesting(d, m.Request)
	}
	slices.SortFunc(moves, func(a, b DomainMove) int { return strings.Compare(a.Domain, b.Domain) })
	for _, d := range decideOn(after, o, now).Layout.Domains {
		requested := slices.ContainsFunc(moves, func(m DomainMove) bool { return m.Domain == d.Spec.Name })
		if requested && d.Move.State == world.MoveFailed {
			return nil, fmt.Sprintf("L2Domain %s: %s", d.Spec.Name, d.Move.Message)
		}
	}
	return moves, ""
}

// requesting returns a copy of a domain with a request.
func requesting(d *v1alpha1.L2Domain, request string) *v1alpha1.L2Domain {
	out := d.DeepCopy()
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[v1alpha1.AnnotationMove] = request
	return out
}

// shardsOf returns the shards of the addresses of a Service, or the reason why it has none.
func (d *decision) shardsOf(key world.Key) (used []world.ShardID, reason string) {
	placements := d.Placements.Services[key]
	if len(placements) == 0 {
		return nil, fmt.Sprintf("Service %s has no address", key)
	}
	for _, p := range placements {
		if p.Reason == "" {
			used = append(used, p.Shard)
		}
	}
	slices.SortFunc(used, world.ShardID.Compare)
	if used = slices.Compact(used); len(used) == 0 {
		p := placements[0]
		return nil, fmt.Sprintf("Service %s is not announced by layer 2: %s: %s: %s", key, p.Addr, p.Reason, p.Message)
	}
	return used, ""
}

// servicesOf returns the Services that have addresses of a shard, with these addresses.
func (d *decision) servicesOf(id world.ShardID) []string {
	addresses := map[world.Key][]netip.Addr{}
	for key, placements := range d.Placements.Services {
		for _, p := range placements {
			if p.Reason == "" && p.Shard == id {
				addresses[key] = append(addresses[key], p.Addr)
			}
		}
	}
	var services []string
	for _, key := range slices.SortedFunc(maps.Keys(addresses), world.Key.Compare) {
		slices.SortFunc(addresses[key], netip.Addr.Compare)
		services = append(services, fmt.Sprint(key, " ", strings.Trim(fmt.Sprint(addresses[key]), "[]")))
	}
	return services
}

// MoveInProgress describes a request of a domain that is not over yet. It is empty if there is none.
func MoveInProgress(d *v1alpha1.L2Domain) string {
	text, present := d.Annotations[v1alpha1.AnnotationMove]
	m := d.Status.Move
	over := m != nil && m.Request == text && m.State != v1alpha1.MoveInProgress
	if !present || over {
		return ""
	}
	return fmt.Sprintf("L2Domain %s: another move is in progress (annotation %s): %s", d.Name,
		v1alpha1.AnnotationMove, printable.Line(text))
}

// Text returns a description for readers. Unless all are wanted, the number of Services per shard is bounded.
func (m *DomainMove) Text(all bool) string {
	var b strings.Builder
	for _, s := range m.Shards {
		fmt.Fprintf(&b, "moves shard %d of L2Domain %s from %s to %s, with %s:\n", s.Index, m.Domain,
			cmp.Or(s.From, "no gateway"), s.To, world.Count(len(s.Services), "Service"))
		list(&b, "  ", s.Services, all)
	}
	return b.String()
}
