// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// served is an address and its Service.
type served struct {
	address netip.Addr
	service string
}

func (s served) String() string { return fmt.Sprintf("%s  %s", s.address, s.service) }

// sorted returns the lines of a list, by address.
func sorted(list []served) (lines []string) {
	slices.SortFunc(list, func(a, b served) int {
		return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.service, b.service))
	})
	for _, s := range list {
		lines = append(lines, s.String())
	}
	return lines
}

// addressesByShard returns the addresses of each shard, with their Services.
func addressesByShard(o *objects.Objects, now time.Time) map[world.ShardID][]served {
	w := o.Snapshot(now)
	layout := place.Compute(w)
	allocation := ipam.Allocate(w, layout.ConfiguredShardOf)
	out := map[world.ShardID][]served{}
	for _, s := range w.Services {
		for _, a := range s.Assigned {
			if id, ok := layout.ConfiguredShardFor(s.Labels, allocation.PoolOf(a), a); ok {
				out[id] = append(out[id], served{a, s.Key.String()})
			}
		}
	}
	return out
}

// domain returns the figure of an L2Domain: the addresses of each shard, the shards, and the nodes. Of the gateways
// that stand by for a shard, a line leads to the next one only.
func domain(d *v1alpha1.L2Domain, addresses map[world.ShardID][]served) figure {
	f := figure{title: fmt.Sprintf("L2Domain %s: network %s", d.Name, d.Spec.PhysicalNetwork)}
	if d.Spec.VLAN != 0 {
		f.title += fmt.Sprintf(", VLAN %d", d.Spec.VLAN)
	}
	if len(d.Status.Shards) == 0 {
		f.title += ", no shard has an address"
	}
	nodes := gateways(d)
	for i := range d.Status.Shards {
		s := &d.Status.Shards[i]
		list := &item{lines: sorted(addresses[world.ShardID{Domain: d.Name, Index: int(s.Index)}])}
		shard := box(active, fmt.Sprintf("shard %d", s.Index), "on "+cmp.Or(s.Active, "no gateway"))
		if s.Active == "" {
			shard.class = broken
		}
		shard.left = []edge{{list, has}}
		f.lists, f.middle = append(f.lists, list), append(f.middle, shard)
		next := slices.IndexFunc(s.Gateways, func(name string) bool { return name != s.Active })
		for i, name := range s.Gateways {
			switch {
			case name == s.Active:
				nodes[name].left = append(nodes[name].left, edge{shard, carries})
			case i == next:
				nodes[name].left = append(nodes[name].left, edge{shard, standby})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		f.right = append(f.right, nodes[name])
	}
	return f
}

// gateways returns the boxes of the nodes of an L2Domain.
func gateways(d *v1alpha1.L2Domain) map[string]*item {
	carried, out := map[string]int{}, map[string]*item{}
	for _, s := range d.Status.Shards {
		carried[s.Active]++
		for _, name := range append(slices.Clone(s.Gateways), s.Active) {
			if name != "" {
				out[name] = box(standby, name, "standby")
			}
		}
	}
	for _, excluded := range d.Status.ExcludedNodes {
		out[excluded.Name] = box(broken, excluded.Name, excluded.Reason)
	}
	for name, b := range out {
		if n := carried[name]; n > 0 {
			reason := ""
			if b.class == broken {
				reason = ", " + b.lines[1]
			}
			b.class, b.lines[1] = active, world.Count(n, "shard")+reason
		}
	}
	return out
}
