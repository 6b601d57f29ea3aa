// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// facts reads what our rows depend on.
func facts(v view) rows.Facts {
	f := rows.Facts{Nodes: map[string]rows.NodeFacts{}, UsedAddrs: map[netip.Addr]bool{},
		Ordinals: map[world.ShardID]int{}}
	v.each(rows.RouterPort, func(_ string, m model.Model) {
		port, _ := m.(*nbdb.LogicalRouterPort)
		if port == nil || isOwned(m) {
			return
		}
		for _, network := range port.Networks {
			p, err := netip.ParsePrefix(network)
			if err != nil {
				continue
			}
			f.UsedAddrs[p.Addr()] = true
			if port.Name == rows.ClusterRouterPort {
				f.Join = append(f.Join, p)
			}
			addNodePrefix(f.Nodes, port.Name, p)
		}
	})
	slices.SortFunc(f.Join, netip.Prefix.Compare)
	for _, router := range v.owned(rows.Router) {
		ids := router.externalIDs()
		id, ok := world.ParseShard(ids[rows.KeyShard])
		if n, err := strconv.Atoi(ids[rows.KeyOrdinal]); ok && err == nil {
			f.Ordinals[id] = n
		}
	}
	if c := v.DatabaseModel().Schema.Table(rows.LoadBalancer).Column("selection_fields"); c != nil {
		f.HashIPv6 = slices.Contains(c.TypeObj.Key.Enum, any("ipv6_src"))
		f.SkipsSNATForReplies = f.HashIPv6 // both were introduced in OVN 25.03
	}
	return f
}

// addNodePrefix records an address of a port if the port belongs to a node.
func addNodePrefix(nodes map[string]rows.NodeFacts, port string, p netip.Prefix) {
	for prefix, add := range map[string]func(*rows.NodeFacts){
		rows.PodPortPrefix:      func(n *rows.NodeFacts) { n.Subnets = append(n.Subnets, p.Masked()) },
		rows.GatewayPortPrefix:  func(n *rows.NodeFacts) { n.Join = append(n.Join, p) },
		rows.ExternalPortPrefix: func(n *rows.NodeFacts) { n.External = append(n.External, p) },
		rows.TransitPortPrefix:  func(n *rows.NodeFacts) { n.Transit = append(n.Transit, p.Masked()) },
	} {
		if name, ok := strings.CutPrefix(port, prefix); ok {
			n := nodes[name]
			add(&n)
			nodes[name] = n
		}
	}
}

// topologyOps returns the functions that write the topology. Deletions come first, to free names and addresses.
func (d *Dataplane) topologyOps(v view, builder *rows.Builder) []opsFunc {
	wanted := map[rows.Ref]bool{}
	opsFuncs := []opsFunc{nil}
	ensure := func(parts [][]rows.Row) {
		for _, wants := range parts {
			for _, r := range wants {
				wanted[rows.Ref{Table: r.Table, ID: r.ID}] = true
			}
			opsFuncs = append(opsFuncs, ensureAll(wants))
		}
	}
	builder.SetEgress(d.egress(v))
	builder.SetRestricted(&d.desired.restricted)
	domains, shards := builder.TopologyRows()
	ensure(domains)
	// ACLs are deleted together with their switch. Restore them before a new router adopts the load balancers.
	for p := range d.desired.plans() {
		if len(p.SourceRanges) > 0 || hasEgress(p) {
			opsFuncs = append(opsFuncs, ensureAll(builder.ACLs(p)))
		}
	}
	ensure(shards)
	if d.numbers(builder) {
		wanted[rows.Ref{Table: rows.AddressSet, ID: rows.Revision(0).ID}] = true
		opsFuncs = append(opsFuncs, d.restoreRevision)
	}
	opsFuncs[0] = d.removeUnwanted(v, wanted)
	return append(opsFuncs, func(b *batch) error { return d.setTimers(b, builder) })
}

func ensureAll(wants []rows.Row) opsFunc {
	return func(b *batch) error {
		for _, r := range wants {
			if err := b.ensure(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// removeUnwanted returns a function that removes rows we own that are not wanted, and duplicates of those that are. It
// ignores rows of Services and nodes. It also removes rows of other versions of this project whose owner types this
// version does not recognize.
func (d *Dataplane) removeUnwanted(v view, wanted map[rows.Ref]bool) opsFunc {
	var gone []record
	routers := map[string]bool{}
	for _, table := range ownTables() {
		seen := map[string]bool{}
		for _, r := range v.filter(table, isTopologyRow) {
			id := r.externalIDs()[rows.KeyPrimaryID]
			if !wanted[rows.Ref{Table: table, ID: id}] || seen[id] {
				gone = append(gone, r)
				if table == rows.Router {
					routers[r.string("name")] = true
				}
			}
			seen[id] = true
		}
	}
	return removeAll(append(gone, d.retiredOn(v, routers)...))
}

// isTopologyRow reports whether we own a row and it belongs to neither a Service nor a node.
func isTopologyRow(m model.Model) bool {
	owner := externalIDs(m)[rows.KeyOwnerType]
	return isOwned(m) && owner != rows.OwnerService && owner != rows.OwnerNode
}

// removeAll returns a function that removes rows. Rows whose parent is in gone are removed along with it.
func removeAll(gone []record) opsFunc {
	return func(b *batch) error {
		holders := map[rows.Ref]bool{}
		for _, r := range gone {
			holders[rows.Ref{Table: r.table, ID: r.string("name")}] = true
		}
		for _, r := range gone {
			ref := rows.ParentOf(r.table, r.externalIDs())
			if rows.IsNonRoot(r.table) && holders[rows.Ref{Table: ref.Table, ID: ref.Name}] {
				continue
			}
			if err := b.remove(r); err != nil {
				return err
			}
		}
		return nil
	}
}
