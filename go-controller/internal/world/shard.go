// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ShardID identifies a unit of failover: shard Index of a domain, from 0.
type ShardID struct {
	Domain string
	Index  int
}

// Compare orders shards by domain, then index.
func (s ShardID) Compare(o ShardID) int {
	return cmp.Or(cmp.Compare(s.Domain, o.Domain), cmp.Compare(s.Index, o.Index))
}

// MaxOrdinals is the number of ordinals, and therefore of shards with addresses, of all domains together.
const MaxOrdinals = 256

// Name returns DOMAIN/INDEX.
func (s ShardID) Name() string { return s.Domain + "/" + strconv.Itoa(s.Index) }

// ParseShard parses the output of ShardID.Name.
func ParseShard(name string) (ShardID, bool) {
	domain, index, ok := strings.Cut(name, "/")
	n, err := strconv.Atoi(index)
	if !ok || domain == "" || err != nil || n < 0 {
		return ShardID{}, false
	}
	return ShardID{Domain: domain, Index: n}, true
}

// ShardState is the state of a shard in OVN. A snapshot has the names of its gateways: with interconnect, nodes report
// their own claims, and a kubelet can write the chassis of another node into its own Node. What one database reports
// has their chassis (see NameGateways).
type ShardState struct {
	// Active is the gateway that has claimed it, empty if none has or it is unknown. Settled means that the claim has been
	// stable for a while.
	Active  string
	Settled bool
	// Rivals are other gateways that have claimed it as well, with interconnect.
	Rivals []string
	// SilentRival is another gateway that had claimed it and does not report any more although its kubelet does, with
	// interconnect. Whether it still answers is unknown.
	SilentRival string
	// Order is the gateways of its HA chassis group by descending priority.
	Order []string
	// Missed are the gateways that had to claim the shard as the first ones of Order and did not, while the shard had
	// addresses and no other had claimed it, with interconnect. The others leave a shard to such a gateway as long as it
	// is alive.
	Missed []string
	// Handover is the progress of a planned move according to its rows.
	Handover Handover
}

// NameGateways sets the states of shards from those that a database has, with the names of nodes instead of chassis. A
// chassis that no node has stays as it is.
func (w *Snapshot) NameGateways(states map[ShardID]ShardState) {
	names := make(map[string]string, len(w.Nodes))
	for _, n := range slices.Backward(w.Nodes) { // the first one of several nodes with one chassis
		if n.Chassis != "" {
			names[n.Chassis] = n.Name
		}
	}
	w.ShardStates = make(map[ShardID]ShardState, len(states))
	for shard, s := range states {
		s.Active = cmp.Or(names[s.Active], s.Active)
		s.Order = slices.Clone(s.Order)
		for i, chassis := range s.Order {
			s.Order[i] = cmp.Or(names[chassis], chassis)
		}
		w.ShardStates[shard] = s
	}
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

// ShardNet returns the network with all addresses of a family by which shards forward inside of OVN, except for
// link-local ones: aliases and the links between routers (package rows). No Service may have one.
func ShardNet(f Family) netip.Prefix {
	if f == IPv4 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{240}), 4)
	}
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x3e, 0x5b, 0x1c}), 31)
}
