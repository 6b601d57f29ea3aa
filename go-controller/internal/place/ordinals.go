// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// NoOrdinal is the ordinal of a shard for which none is left.
const NoOrdinal = -1

// ordinals assigns an ordinal to each shard that has addresses, in a cluster with interconnect: the one it has, or else
// the lowest free one. Of two shards with the same one, the first keeps it. Without interconnect there are none.
func (l *Layout) ordinals(s *Placements, w *world.Snapshot) map[world.ShardID]int {
	if !l.Interconnect {
		return nil
	}
	var shards []world.ShardID
	for _, d := range l.Domains {
		for _, shard := range d.Shards {
			if len(s.anchors(w, shard.ID)) > 0 {
				shards = append(shards, shard.ID)
			}
		}
	}
	out, used := make(map[world.ShardID]int, len(shards)), make([]bool, world.MaxOrdinals)
	for _, id := range shards {
		if n, ok := w.Ordinals[id]; ok && n >= 0 && n < world.MaxOrdinals && !used[n] {
			out[id], used[n] = n, true
		}
	}
	for _, id := range shards {
		if _, ok := out[id]; ok {
			continue
		}
		if out[id] = slices.Index(used, false); out[id] >= 0 {
			used[out[id]] = true
		}
	}
	return out
}
