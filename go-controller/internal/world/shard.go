// SPDX-License-Identifier: Apache-2.0

package world

import "cmp"

// ShardID identifies a unit of failover: shard Index of a domain, from 0.
type ShardID struct {
	Domain string
	Index  int
}

// Compare orders shards by domain, then index.
func (s ShardID) Compare(o ShardID) int {
	return cmp.Or(cmp.Compare(s.Domain, o.Domain), cmp.Compare(s.Index, o.Index))
}

// ShardState is the state of a shard in OVN: the chassis that has claimed it (empty if none or unknown), whether that
// claim has been stable for a while, the chassis of its HA chassis group by descending priority, and the progress of a
// planned move according to its rows. With interconnect, other chassis may have claimed it as well (Rivals).
type ShardState struct {
	Active   string
	Rivals   []string
	Settled  bool
	Order    []string
	Handover Handover
}

// Handover is the progress of the planned move of a shard to another gateway.
type Handover uint8

// The steps of a handover.
const (
	// NoHandover means that no move is planned.
	NoHandover Handover = iota
	// HandoverAwaited means that the target gateway has not claimed the shard yet.
	HandoverAwaited
	// HandoverClaimed means that the target gateway has claimed the shard a moment ago.
	HandoverClaimed
)

func (h Handover) String() string { return [...]string{"none", "awaited", "claimed"}[h] }
