// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// VIPs returns the addresses of load balancers that OVN answers for on behalf of this chassis, with the shard of each.
// It reads them from the Address_Sets that ovn-northd maintains for each router and that the router's flows for ARP
// and ND refer to (lr_lb_address_set_name in lib/ovn-util.c). They are not replicated: a cluster has thousands of
// other sets, and the names of these are known only once a shard is claimed. An error means that the addresses are
// unknown.
func (c *Claims) VIPs(ctx context.Context) (map[netip.Addr]Claim, error) {
	conn, v, err := c.db.current()
	if err != nil {
		return nil, err
	}
	ports := c.heldPorts(v)
	all := map[netip.Addr]Claim{}
	if len(ports) == 0 {
		return all, nil
	}
	ops := make([]ovsdb.Operation, 0, 2*len(ports))
	for _, port := range ports {
		ops = append(ops, query("Datapath_Binding", "_uuid", ovsdb.UUID{GoUUID: port.Datapath}, "tunnel_key"))
	}
	routers, err := conn.query(ctx, ops...)
	if err != nil {
		return nil, fmt.Errorf("tunnel keys of routers: %w", err)
	}
	ops = ops[:0]
	var claims []Claim
	for i, port := range ports {
		claim, ok := claimOf(v, port)
		if !ok || len(routers[i]) != 1 {
			continue // deleted since
		}
		for _, family := range []int{4, 6} {
			claims = append(claims, claim)
			ops = append(ops, query(rows.AddressSet, "name", addressSet(routers[i][0]["tunnel_key"], family), "addresses"))
		}
	}
	sets, err := conn.query(ctx, ops...)
	if err != nil {
		return nil, fmt.Errorf("addresses of routers: %w", err)
	}
	for i, claim := range claims {
		for _, set := range sets[i] {
			for _, text := range elements(set["addresses"]) {
				if a, err := netip.ParseAddr(text); err == nil {
					all[a] = claim
				}
			}
		}
	}
	return all, nil
}

// addressSet returns the name of the set with a router's addresses of a family, 4 or 6. The tunnel key is decoded from
// JSON as a float64. With interconnect it has eight digits.
func addressSet(tunnelKey any, family int) string {
	return fmt.Sprintf("_rtr_lb_%.0f_ip%d", tunnelKey, family)
}

// elements returns the strings in a column that is a set. A set with one element is decoded as that element.
func elements(column any) []string {
	var out []string
	switch column := column.(type) {
	case string:
		out = append(out, column)
	case ovsdb.OvsSet:
		for _, element := range column.GoSet {
			if text, ok := element.(string); ok {
				out = append(out, text)
			}
		}
	}
	return out
}
