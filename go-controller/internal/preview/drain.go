// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Losing returns the Services that lose an address, or its announcement, as NAMESPACE/NAME in order.
func (c *Changes) Losing() []string {
	var list []string
	for i := range c.Services {
		if c.Services[i].Effect == Loses {
			list = append(list, c.Services[i].Service)
		}
	}
	return list
}

// Staying returns the Services with addresses that stay on a node that drains, because all gateways of their L2Domain
// do, as NAMESPACE/NAME in order.
func Staying(o *objects.Objects, node string, now time.Time) []string {
	d := decideOn(o, o, now)
	draining := map[string]bool{}
	for _, domain := range d.Layout.Domains {
		draining[domain.Spec.Name] = domain.AllDraining
	}
	stays := map[world.Key]bool{}
	for key, placements := range d.Placements.Services {
		for _, p := range placements {
			if (p.Reason == "" || p.Reason == place.ReasonProbing) && draining[p.Shard.Domain] && d.active(p.Shard) == node {
				stays[key] = true
			}
		}
	}
	var list []string
	for _, key := range slices.SortedFunc(maps.Keys(stays), world.Key.Compare) {
		list = append(list, key.String())
	}
	printable.Clean(&list)
	return list
}
