// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// facts reads what our rows depend on.
func facts(v view) rows.Facts {
	f := rows.Facts{Nodes: map[string]rows.NodeFacts{}, Taken: map[netip.Addr]bool{}, Ordinals: map[world.ShardID]int{}}
	v.each(rows.RouterPort, func(_ string, m model.Model) {
		port, _ := m.(*nbdb.LogicalRouterPort)
		if port == nil || ours(m) {
			return
		}
		for _, network := range port.Networks {
			p, err := netip.ParsePrefix(network)
			if err != nil {
				continue
			}
			f.Taken[p.Addr()] = true
			if port.Name == rows.ClusterRouterPort {
				f.Join = append(f.Join, p)
			}
			noteNode(f.Nodes, port.Name, p)
		}
	})
	slices.SortFunc(f.Join, netip.Prefix.Compare)
	for _, router := range v.owned(rows.Router) {
		ids := router.externalIDs()
		id, ok := rows.ParseShard(ids[rows.KeyShard])
		if n, err := strconv.Atoi(ids[rows.KeyOrdinal]); ok && err == nil {
			f.Ordinals[id] = n
		}
	}
	if c := v.DatabaseModel().Schema.Table(rows.LoadBalancer).Column("selection_fields"); c != nil {
		f.HashIPv6 = slices.Contains(c.TypeObj.Key.Enum, any("ipv6_src"))
		f.RepliesUnhidden = f.HashIPv6 // both came with OVN 25.03
	}
	return f
}

// noteNode notes an address of a port if it is one of a node's.
func noteNode(nodes map[string]rows.NodeFacts, port string, p netip.Prefix) {
	for prefix, add := range map[string]func(*rows.NodeFacts){
		rows.PodPortPrefix:      func(n *rows.NodeFacts) { n.Subnets = append(n.Subnets, p.Masked()) },
		rows.GatewayPortPrefix:  func(n *rows.NodeFacts) { n.Join = append(n.Join, p) },
		rows.ExternalPortPrefix: func(n *rows.NodeFacts) { n.External = append(n.External, p) },
	} {
		if name, ok := strings.CutPrefix(port, prefix); ok {
			n := nodes[name]
			add(&n)
			nodes[name] = n
		}
	}
}

// groundUnits are the changes that lay the ground. What is gone goes first, so that its
// names and addresses are free.
func (d *Dataplane) groundUnits(v view, ground *rows.Ground) []unit {
	wanted := map[rows.Ref]bool{}
	units := []unit{nil}
	ensure := func(parts [][]rows.Row) {
		for _, wants := range parts {
			for _, r := range wants {
				wanted[rows.Ref{Table: r.Table, ID: r.ID}] = true
			}
			units = append(units, ensureAll(wants))
		}
	}
	domains, shards := ground.Units()
	ensure(domains)
	// ACLs went with their switch: they are back before a new router takes the load balancers up.
	for _, p := range d.want.plans {
		if len(p.Sources) > 0 {
			units = append(units, ensureAll(ground.Sources(p)))
		}
	}
	ensure(shards)
	units[0] = removeOthers(v, wanted)
	return append(units, func(b *batch) error { return setTimers(b, ground) })
}

func ensureAll(wants []rows.Row) unit {
	return func(b *batch) error {
		for _, r := range wants {
			if err := b.ensure(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// removeOthers is the change that removes rows of ours that are not wanted, and all but
// one of those with the same id. It leaves alone what belongs to Services and nodes. Rows
// that another version of ours left, with owner types that this one does not know, go.
func removeOthers(v view, wanted map[rows.Ref]bool) unit {
	var gone []record
	for _, table := range ownTables() {
		seen := map[string]bool{}
		for _, r := range v.that(table, grounds) {
			id := r.externalIDs()[rows.KeyPrimaryID]
			if !wanted[rows.Ref{Table: table, ID: id}] || seen[id] {
				gone = append(gone, r)
			}
			seen[id] = true
		}
	}
	return removeAll(gone)
}

// grounds tells whether a row is ours and belongs to neither a Service nor a node.
func grounds(m model.Model) bool {
	owner := externalIDs(m)[rows.KeyOwnerType]
	return ours(m) && owner != rows.OwnerService && owner != rows.OwnerNode
}

// removeAll is the change that removes rows; those held by others of them go along.
func removeAll(gone []record) unit {
	return func(b *batch) error {
		holders := map[rows.Ref]bool{}
		for _, r := range gone {
			holders[rows.Ref{Table: r.table, ID: r.text("name")}] = true
		}
		for _, r := range gone {
			home := rows.Home(r.table, r.externalIDs())
			if rows.Rootless(r.table) && holders[rows.Ref{Table: home.Table, ID: home.Name}] {
				continue
			}
			if err := b.remove(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// setTimers gathers the changes of single keys of NB_Global.
func setTimers(b *batch, ground *rows.Ground) error {
	for _, r := range b.view.all(nbGlobal) {
		global, ok := r.model.(*nbdb.NBGlobal)
		if !ok {
			continue
		}
		options, ids := ground.Timers(global.Options, global.ExternalIDs)
		mutations := append(keyMutations("options", options), keyMutations("external_ids", ids)...)
		if len(mutations) > 0 {
			b.ops = append(b.ops, ovsdb.Operation{
				Op: ovsdb.OperationMutate, Table: nbGlobal, Where: byUUID(r.uuid), Mutations: mutations,
			})
		}
	}
	return nil
}

// keyMutations change keys of a map. The old value is part of the deletion: if someone
// else was faster, that value stays.
func keyMutations(column string, changes []rows.KeyChange) []ovsdb.Mutation {
	var out []ovsdb.Mutation
	for _, c := range changes {
		if c.Old != "" {
			out = append(out, *ovsdb.NewMutation(column, ovsdb.MutateOperationDelete, pair(c.Key, c.Old)))
		}
		if c.New != "" {
			out = append(out, *ovsdb.NewMutation(column, ovsdb.MutateOperationInsert, pair(c.Key, c.New)))
		}
	}
	return out
}

// pair is a map of one key.
func pair(key, value string) ovsdb.OvsMap { return ovsdb.OvsMap{GoMap: map[any]any{key: value}} }
