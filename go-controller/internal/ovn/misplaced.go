// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// OVN-Kubernetes creates load balancers for each address in a Service on the gateway routers of nodes, in addition to
// ours on the shard's router. Both need some logical flows with the same text, and a group of routers shares one such
// flow. If the OVN-Kubernetes load balancer was created first, ovn-northd of OVN 25.09.1 to 26.03.2 (at least)
// selects the wrong group, or changes a group that other flows use (ovn_dp_group_find and ovn_dp_group_create in
// northd/lflow-mgr.c). The shard's router then has no flow for the address, or also has the flow of OVN-Kubernetes,
// and clients receive no reply. Only the logical flows reveal this.

const (
	// flowCheckInterval is the interval between checks of the logical flows. For each check, the server of the
	// southbound database scans all of them twice. A suspected address is checked again after recheckDelay, because
	// northd may still be writing flows.
	flowCheckInterval   = 30 * time.Second
	flowRecheckInterval = 10 * time.Second
)

// dstAddrPattern matches the address in the match of a load balancer's logical flow.
var dstAddrPattern = regexp.MustCompile(`\bip[46]\.dst == ([0-9a-f.:]+)`)

// Misplaced returns the addresses of our load balancers whose logical flows are missing from their shard's router, or
// coexist there with those of another load balancer. It may be called from any goroutine.
func (d *Dataplane) Misplaced() map[netip.Addr]bool {
	if found := d.misplaced.Load(); found != nil {
		return *found
	}
	return nil
}

// watchMisplacedFlows checks the logical flows until ctx ends.
func (d *Dataplane) watchMisplacedFlows(ctx context.Context) error {
	var suspected map[netip.Addr]bool
	wait := time.NewTimer(flowCheckInterval)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		seen, err := d.findMisplaced(ctx)
		if err != nil {
			klog.FromContext(ctx).V(1).Info("Failed to read logical flows of load balancers", "reason", err)
		}
		found := maps.Clone(seen)
		maps.DeleteFunc(found, func(a netip.Addr, _ bool) bool { return !suspected[a] })
		suspected = seen
		if err == nil && !maps.Equal(found, d.Misplaced()) {
			d.misplaced.Store(&found)
			d.changed(ShardStates)
		}
		if maps.Equal(found, seen) {
			wait.Reset(flowCheckInterval)
		} else {
			wait.Reset(flowRecheckInterval)
		}
	}
}

// findMisplaced returns the addresses that are misplaced at present. It returns none if northd does not have this bug.
func (d *Dataplane) findMisplaced(ctx context.Context) (map[netip.Addr]bool, error) {
	nb, v, err := d.nb.current()
	if err != nil {
		return nil, err
	}
	sb, _, err := d.sb.current()
	if err != nil {
		return nil, err
	}
	var major, minor int
	if _, err := fmt.Sscanf(nb.client.Schema().Version, "%d.%d.", &major, &minor); err != nil {
		return nil, fmt.Errorf("version of the northbound schema %q: %w", nb.client.Schema().Version, err)
	}
	if major == 7 && minor < 12 { // OVN 25.03 and earlier
		return nil, nil
	}
	return sb.misplaced(ctx, vipsByRouter(v))
}

// vipsByRouter returns the load balancer addresses on each shard's router, by router name.
func vipsByRouter(v view) map[string]map[netip.Addr]bool {
	balancers := map[string]*nbdb.LoadBalancer{}
	v.each(rows.LoadBalancer, func(uuid string, m model.Model) {
		if lb, ok := m.(*nbdb.LoadBalancer); ok && isOwned(m) {
			balancers[uuid] = lb
		}
	})
	all := map[string]map[netip.Addr]bool{}
	v.each(rows.Router, func(_ string, m model.Model) {
		router, ok := m.(*nbdb.LogicalRouter)
		if !ok || !isOwned(m) || router.ExternalIDs[rows.KeyOwnerType] != rows.OwnerShard || len(router.LoadBalancer) == 0 {
			return
		}
		addrs := map[netip.Addr]bool{}
		for _, uuid := range router.LoadBalancer {
			if lb := balancers[uuid]; lb != nil {
				for vip := range lb.Vips {
					if at, err := netip.ParseAddrPort(vip); err == nil {
						addrs[at.Addr()] = true
					}
				}
			}
		}
		all[router.Name] = addrs
	})
	return all
}

// misplaced returns the misplaced load balancer addresses of the given routers.
func (c *connection) misplaced(ctx context.Context, routers map[string]map[netip.Addr]bool) (map[netip.Addr]bool,
	error) {
	if len(routers) == 0 {
		return nil, nil
	}
	names := slices.Sorted(maps.Keys(routers))
	ops := make([]ovsdb.Operation, 0, len(names)+2)
	for _, name := range names {
		ops = append(ops, query("Datapath_Binding", "external_ids", pair("name", name), "_uuid"))
	}
	datapaths, err := c.query(ctx, ops...)
	if err != nil {
		return nil, err
	}
	// A router that northd has not written yet must not stop the check of others.
	written := map[string]any{}
	for i, name := range names {
		if len(datapaths[i]) == 1 {
			written[name] = datapaths[i][0]["_uuid"]
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return written[name] == nil })
	ops = ops[:0]
	for _, name := range names {
		ops = append(ops, query("Logical_DP_Group", "datapaths", ovsdb.OvsSet{GoSet: []any{written[name]}}, "_uuid"))
	}
	found, err := c.query(ctx, append(ops,
		query("Logical_Flow", "external_ids", pair("stage-name", "lr_in_defrag"), "match", "logical_datapath",
			"logical_dp_group"),
		query("Logical_Flow", "external_ids", pair("stage-name", "lr_in_dnat"), "match", "logical_datapath",
			"logical_dp_group"))...)
	if err != nil {
		return nil, err
	}
	tracked, translated := found[len(names)], found[len(names)+1]
	wrong := map[netip.Addr]bool{}
	for i, name := range names {
		datapath := written[name]
		at := map[any]bool{datapath: true} // the router's datapath and the groups that contain it
		for _, group := range found[i] {
			at[group["_uuid"]] = true
		}
		lacks := map[netip.Addr]bool{}
		for _, flow := range translated { // northd writes both kinds at once; each of our own is for one router
			switch a := destinationOf(flow); {
			case !routers[name][a]:
			case flow["logical_datapath"] == datapath:
				lacks[a] = true
			case at[flow["logical_dp_group"]]:
				wrong[a] = true
			}
		}
		for _, flow := range tracked {
			if at[flow["logical_datapath"]] || at[flow["logical_dp_group"]] {
				delete(lacks, destinationOf(flow))
			}
		}
		maps.Copy(wrong, lacks)
	}
	return wrong, nil
}

// destinationOf returns the address that a logical flow is for, or the zero Addr.
func destinationOf(flow ovsdb.Row) netip.Addr {
	match, _ := flow["match"].(string)
	if found := dstAddrPattern.FindStringSubmatch(match); found != nil {
		a, _ := netip.ParseAddr(found[1]) //nolint:errcheck // no address is the zero one
		return a
	}
	return netip.Addr{}
}

// query returns an operation that selects columns of the rows whose given column includes a value.
func query(table, column string, value any, columns ...string) ovsdb.Operation {
	return ovsdb.Operation{
		Op: ovsdb.OperationSelect, Table: table, Columns: columns,
		Where: []ovsdb.Condition{ovsdb.NewCondition(column, ovsdb.ConditionIncludes, value)},
	}
}

// query reads rows that are not in the replica. An empty column is decoded as an OvsSet, which cannot be a map key, and
// is omitted.
func (c *connection) query(ctx context.Context, ops ...ovsdb.Operation) ([][]ovsdb.Row, error) {
	results, err := c.transact(ctx, ops)
	if err != nil {
		return nil, err
	}
	if len(results) < len(ops) {
		return nil, errors.New("fewer results than operations")
	}
	all := make([][]ovsdb.Row, len(ops))
	for i := range ops {
		if results[i].Error != "" {
			return nil, fmt.Errorf("select from %s: %s: %s", ops[i].Table, results[i].Error, results[i].Details)
		}
		for _, row := range results[i].Rows {
			maps.DeleteFunc(row, func(_ string, value any) bool {
				set, is := value.(ovsdb.OvsSet)
				return is && len(set.GoSet) == 0
			})
			all[i] = append(all[i], row)
		}
	}
	return all, nil
}
