// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// A claim of the chassis is reported once, with the segment's VLAN and the router's addresses. Earlier claims and
// claims of other chassis are not reported.
func TestClaimsAreReported(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	translate(t, nb, sb)
	d, _ := dial(t, nb, sb)
	f := topology(3)
	f.Domains[0].VLAN, f.Domains[0].Announce = 7, 30*time.Second
	configure(t, d, f)
	nb.sync(t)
	sb.sbctl(t, "chassis-add", "c1", "geneve", "127.0.0.1")
	sb.sbctl(t, "chassis-add", "c2", "geneve", "127.0.0.2")
	claim := func(shard, chassis string) {
		t.Helper()
		sb.sbctl(t, "--may-exist", "lsp-bind", "cr-slb-lan-"+shard+"-ext", chassis)
	}
	leave := func(shard string) {
		t.Helper()
		sb.sbctl(t, "lsp-unbind", "cr-slb-lan-"+shard+"-ext")
	}
	claim("0", "c1")

	reported := make(chan Claim, 100)
	c, err := NewClaims(Endpoint{Address: "unix:" + sb.socket}, "c1", func(c Claim) { reported <- c })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	expect := func(index int) {
		t.Helper()
		got := await.Receive(t, fmt.Sprintf("the claim of shard %d is reported", index), reported)
		shard := f.Domains[0].Shards[index]
		if !c.Holds(shard.ID) {
			t.Errorf("does not hold shard %d", index)
		}
		mac := sb.sbctl(t, "--bare", "--columns=mac", "find", "Port_Binding",
			fmt.Sprintf("logical_port=slb-lan-%d-ext", index))
		if got.Shard != shard.ID || got.VLAN != 7 || got.Repeat != 30*time.Second ||
			!strings.HasPrefix(mac, got.MAC.String()+" ") || len(got.Addrs) != len(shard.Anchors) ||
			got.Addrs[0] != shard.Anchors[0].Addr() {
			t.Errorf("reported %+v, want shard %d with %s", got, index, mac)
		}
	}
	await.True(t, "the database was read", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.synced })
	claim("2", "c2")
	claim("1", "c1")
	expect(1)
	leave("0")
	await.True(t, "shard 0 is given up", func() bool { return !c.Holds(f.Domains[0].Shards[0].ID) })
	claim("0", "c1")
	expect(0)
	held := map[int]time.Duration{}
	for _, claim := range c.Held() {
		held[claim.Shard.Index] = claim.Repeat
	}
	if !maps.Equal(held, map[int]time.Duration{0: 30 * time.Second, 1: 30 * time.Second}) {
		t.Errorf("holds shards with intervals %v", held)
	}

	// An event that is older than what a resync has read changes nothing.
	_, v, err := c.db.current()
	if err != nil {
		t.Fatal(err)
	}
	v.each(portBinding, func(uuid string, m model.Model) {
		if port, ok := redirect(m); ok {
			c.OnUpdate(portBinding, nil, &sbdb.PortBinding{UUID: uuid, LogicalPort: port.LogicalPort})
		}
	})
	if !c.Holds(f.Domains[0].Shards[0].ID) {
		t.Error("does not hold shard 0 after an old event")
	}

	// Claims made while there is no connection are reported, too. Claims that are kept are not.
	sb.kill()
	await.True(t, "the connection is lost", func() bool { return c.db.conn.Load() == nil })
	sb.start(t)
	leave("2")
	claim("2", "c1")
	expect(2)
	cancel()
	<-ended
	if len(reported) > 0 {
		t.Errorf("also reported %+v", <-reported)
	}
}
