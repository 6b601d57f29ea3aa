// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Claim is a shard that a chassis has just claimed, and the router's identity on the segment.
type Claim struct {
	Shard world.ShardID
	// VLAN is the tag of the segment's frames on the bridge, 1 to 4094, or 0 for untagged frames.
	VLAN int
	// MAC is the MAC address of the router's port on the segment. Addrs are the router's own addresses there.
	MAC   net.HardwareAddr
	Addrs []netip.Addr
	// Repeat is the time after which the announcement is to be repeated, 0 for never.
	Repeat time.Duration
}

// Claims watches the southbound database for the shards that a chassis claims.
type Claims struct {
	db      *replica
	name    string // of the chassis
	claimed func(Claim)

	mu sync.Mutex
	// holders maps each redirect port to the last known UUID of the Chassis row that claimed it. It outlives a
	// connection, so that claims made while disconnected are reported.
	holders map[string]string
	// synced is true once the database has been read. Claims made after that are reported.
	synced bool
}

// NewClaims returns a Claims. It does nothing before Run. In a clustered database it reads any server. It calls
// claimed for each shard that the chassis claims from then on, from any goroutine. claimed must not block.
func NewClaims(e Endpoint, name string, claimed func(Claim)) (*Claims, error) {
	if err := e.check("southbound"); err != nil {
		return nil, err
	}
	c := &Claims{name: name, claimed: claimed, holders: map[string]string{}}
	c.db = &replica{
		name: "southbound", endpoint: e, handler: c, anyServer: true, onSynced: c.resync,
		schema: func() (model.ClientDBModel, []watch, error) {
			db, err := sbdb.FullDatabaseModel()
			return db, []watch{
				{table: portBinding, where: []ovsdb.Condition{columnEquals("type", "chassisredirect"),
					columnEquals("type", "localnet")}},
				{table: chassis, where: []ovsdb.Condition{columnEquals("name", name)}},
			}, err
		},
	}
	return c, nil
}

// Run keeps the connection until ctx ends.
func (c *Claims) Run(ctx context.Context) error { return c.db.run(ctx) }

// Holds reports whether the chassis has claimed the shard, according to the last known state of the database.
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

// Held returns the shards that the chassis has claimed, according to the last known state of the database, in no order.
func (c *Claims) Held() []Claim {
	_, v, err := c.db.current()
	if err != nil {
		return nil
	}
	var out []Claim
	for _, port := range c.heldPorts(v) {
		if claim, ok := claimOf(v, port); ok {
			out = append(out, claim)
		}
	}
	return out
}

// heldPorts returns the redirect ports of the shards that the chassis has claimed, in no order.
func (c *Claims) heldPorts(v view) []*sbdb.PortBinding {
	var out []*sbdb.PortBinding
	v.each(portBinding, func(_ string, m model.Model) {
		port, ok := redirect(m)
		if !ok || port.Chassis == nil {
			return
		}
		if own, ok := v.Table(chassis).Row(*port.Chassis).(*sbdb.Chassis); ok && own.Name == c.name {
			out = append(out, port)
		}
	})
	return out
}

// OnAdd implements cache.EventHandler.
func (c *Claims) OnAdd(_ string, m model.Model) { c.handlePort(m) }

// OnUpdate implements cache.EventHandler.
func (c *Claims) OnUpdate(_ string, _, m model.Model) { c.handlePort(m) }

// OnDelete implements cache.EventHandler.
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

// handlePort records which chassis holds a port. The chassis may be unknown until the replica is complete; resync
// handles that case.
func (c *Claims) handlePort(m model.Model) {
	if port, ok := redirect(m); ok {
		if _, v, err := c.db.current(); err == nil {
			c.recordHolder(v, port.UUID)
		}
	}
}

// resync compares a complete replica with the recorded holders.
func (c *Claims) resync() {
	_, v, err := c.db.current()
	if err != nil {
		return
	}
	var ports []string
	v.each(portBinding, func(uuid string, m model.Model) {
		if _, ok := redirect(m); ok {
			ports = append(ports, uuid)
		}
	})
	for _, uuid := range ports {
		c.recordHolder(v, uuid)
	}
	c.mu.Lock()
	c.synced = true
	c.mu.Unlock()
}

// recordHolder records which chassis holds a port now, and reports a claim. It reads the row while it has the lock:
// resync and the events run in goroutines of their own, and a state that one of them had read earlier must not replace
// what the other has recorded since.
func (c *Claims) recordHolder(v view, uuid string) {
	c.mu.Lock()
	port, ok := v.Table(portBinding).Row(uuid).(*sbdb.PortBinding)
	if !ok { // It has been deleted since, which OnDelete handles.
		c.mu.Unlock()
		return
	}
	holder := ""
	if port.Chassis != nil {
		holder = *port.Chassis
	}
	changed := c.synced && c.holders[port.LogicalPort] != holder
	c.holders[port.LogicalPort] = holder
	c.mu.Unlock()
	own, ok := v.Table(chassis).Row(holder).(*sbdb.Chassis)
	if !changed || !ok || own.Name != c.name {
		return
	}
	if claim, ok := claimOf(v, port); ok {
		c.claimed(claim)
	}
}

// claimOf builds a Claim from the Port_Binding row of the router's port. The column mac contains "MAC NETWORK
// NETWORK" (ovn-sb(5), Port_Binding).
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
		localnet, ok := m.(*sbdb.PortBinding)
		if !ok || localnet.LogicalPort != plan.LocalnetPort(shard.Domain) {
			return
		}
		if localnet.Tag != nil {
			claim.VLAN = *localnet.Tag
		}
		seconds, _ := strconv.ParseUint(localnet.ExternalIDs[rows.KeyAnnounce], 10, 16)
		claim.Repeat = time.Duration(seconds) * time.Second
	})
	return claim, true
}
