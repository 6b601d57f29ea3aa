// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Claim is a shard that a chassis has just claimed, as its segment knows it.
type Claim struct {
	Shard world.ShardID
	// VLAN is the tag of the segment's frames on the bridge, 1 to 4094, or 0 for none.
	VLAN int
	// MAC is that of the router's port on the segment, Addrs the router's own addresses there.
	MAC   net.HardwareAddr
	Addrs []netip.Addr
}

// Claims follows in the southbound database which shards a chassis claims.
type Claims struct {
	db      *link
	name    string // of the chassis
	claimed func(Claim)

	mu sync.Mutex
	// holders are the Chassis rows that had the shards' redirect ports last, by port. They outlive a connection: what was claimed
	// while there was none is news.
	holders map[string]string
	// read: the database was read once. What the chassis has claimed since then is news.
	read bool
}

// NewClaims returns a Claims that does nothing before Run. Of a clustered database it reads any server. Claimed is called with each
// shard that the chassis claims from then on, from any goroutine, and must not block.
func NewClaims(e Endpoint, name string, claimed func(Claim)) (*Claims, error) {
	if err := e.check("southbound"); err != nil {
		return nil, err
	}
	c := &Claims{name: name, claimed: claimed, holders: map[string]string{}}
	c.db = &link{
		name: "southbound", endpoint: e, handler: c, anyServer: true, up: c.synced,
		schema: func() (model.ClientDBModel, []watch, error) {
			db, err := sbdb.FullDatabaseModel()
			return db, []watch{
				{table: portBinding, where: []ovsdb.Condition{is("type", "chassisredirect"), is("type", "localnet")}},
				{table: chassis, where: []ovsdb.Condition{is("name", name)}},
			}, err
		},
	}
	return c, nil
}

// Run keeps the connection until ctx ends.
func (c *Claims) Run(ctx context.Context) error { return c.db.run(ctx) }

// Holds reports whether the chassis has a shard, as far as the database is known.
func (c *Claims) Holds(shard world.ShardID) bool {
	_, v, err := c.db.current()
	if err != nil {
		return false
	}
	c.mu.Lock()
	holder := c.holders[rows.RedirectPort(shard)]
	c.mu.Unlock()
	own, ok := v.Table(chassis).Row(holder).(*sbdb.Chassis)
	return ok && own.Name == c.name
}

// OnAdd takes note of a row that is new.
func (c *Claims) OnAdd(_ string, m model.Model) { c.seen(m) }

// OnUpdate takes note of a row that changed.
func (c *Claims) OnUpdate(_ string, _, m model.Model) { c.seen(m) }

// OnDelete forgets a shard.
func (c *Claims) OnDelete(_ string, m model.Model) {
	if port, ok := redirect(m); ok {
		c.mu.Lock()
		delete(c.holders, port.LogicalPort)
		c.mu.Unlock()
	}
}

func redirect(m model.Model) (*sbdb.PortBinding, bool) {
	port, ok := m.(*sbdb.PortBinding)
	return port, ok && strings.HasPrefix(port.LogicalPort, rows.RedirectPrefix)
}

// seen takes note of who has a port. Until the replica is complete, which synced waits for, the chassis may not be known.
func (c *Claims) seen(m model.Model) {
	if port, ok := redirect(m); ok {
		if _, v, err := c.db.current(); err == nil {
			c.note(v, port)
		}
	}
}

// synced compares a replica that is complete with what was known.
func (c *Claims) synced() {
	_, v, err := c.db.current()
	if err != nil {
		return
	}
	v.each(portBinding, func(_ string, m model.Model) {
		if port, ok := redirect(m); ok {
			c.note(v, port)
		}
	})
	c.mu.Lock()
	c.read = true
	c.mu.Unlock()
}

func (c *Claims) note(v view, port *sbdb.PortBinding) {
	holder := ""
	if port.Chassis != nil {
		holder = *port.Chassis
	}
	c.mu.Lock()
	news := c.read && c.holders[port.LogicalPort] != holder
	c.holders[port.LogicalPort] = holder
	c.mu.Unlock()
	own, ok := v.Table(chassis).Row(holder).(*sbdb.Chassis)
	if !news || !ok || own.Name != c.name {
		return
	}
	if claim, ok := claimOf(v, port); ok {
		c.claimed(claim)
	}
}

// claimOf reads the router's port from its row: the column mac is "MAC NETWORK NETWORK" (ovn-sb(5), Port_Binding).
func claimOf(v view, port *sbdb.PortBinding) (Claim, bool) {
	shard, ok := rows.ParseRedirectPort(port.LogicalPort)
	if !ok || len(port.MAC) != 1 {
		return Claim{}, false
	}
	words := strings.Fields(port.MAC[0])
	if len(words) == 0 {
		return Claim{}, false
	}
	mac, err := net.ParseMAC(words[0])
	if err != nil || len(mac) != 6 {
		return Claim{}, false
	}
	claim := Claim{Shard: shard, MAC: mac}
	for _, word := range words[1:] {
		if network, err := netip.ParsePrefix(word); err == nil {
			claim.Addrs = append(claim.Addrs, network.Addr())
		}
	}
	v.each(portBinding, func(_ string, m model.Model) {
		if localnet, ok := m.(*sbdb.PortBinding); ok && localnet.LogicalPort == plan.LocalnetPort(shard.Domain) && localnet.Tag != nil {
			claim.VLAN = *localnet.Tag
		}
	})
	return claim, true
}
