// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// The addresses that OVN answers for on a chassis are those of the Services in the shards that it has claimed.
func TestAddressesOfClaimedShards(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	translate(t, nb, sb)
	d, _ := dial(t, nb, sb)
	f := topology(3)
	configure(t, d, f)
	apply(t, d, service(1, 3, "10.244.1.1", "fd00:10:244:1::1"), service(4, 3), service(2, 3, "10.244.1.2"))
	nb.sync(t)
	sb.sbctl(t, "chassis-add", "c1", "geneve", "127.0.0.1")
	sb.sbctl(t, "chassis-add", "c2", "geneve", "127.0.0.2")
	c, err := NewClaims(Endpoint{Address: "unix:" + sb.socket}, "c1", func(Claim) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.VIPs(t.Context()); err == nil {
		t.Error("without a connection there are addresses")
	}
	go func() { _ = c.Run(t.Context()) }()
	await.True(t, "the database was read", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.synced })
	expect := func(what string, shard int, want ...string) {
		t.Helper()
		got, err := c.VIPs(t.Context())
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
		}
		for _, a := range want {
			is := got[netip.MustParseAddr(a)]
			if mac := sb.sbctl(t, "--bare", "--columns=mac", "find", "Port_Binding",
				"logical_port=slb-lan-1-ext"); is.Shard != f.Domains[0].Shards[shard].ID || is.VLAN != 7 ||
				!strings.HasPrefix(mac, is.MAC.String()+" ") {
				t.Errorf("%s: %s is %+v, want the one of %s", what, a, is, mac)
			}
		}
	}
	expect("nothing is claimed", 0)
	sb.sbctl(t, "lsp-bind", "cr-slb-lan-0-ext", "c1")
	sb.sbctl(t, "lsp-bind", "cr-slb-lan-1-ext", "c1")
	sb.sbctl(t, "lsp-bind", "cr-slb-lan-2-ext", "c2")
	await.True(t, "two shards are claimed", func() bool { return len(c.Held()) == 2 })
	expect("two shards", 1, "10.50.1.1", "fd00:50::1:1", "10.50.1.4", "fd00:50::1:4")
	remove(t, d, service(4, 3))
	nb.sync(t)
	expect("one Service is gone", 1, "10.50.1.1", "fd00:50::1:1")
}

func TestAddressSetOfARouterWithARequestedKey(t *testing.T) {
	var row map[string]any
	if err := json.Unmarshal([]byte(`{"tunnel_key": 16711679}`), &row); err != nil {
		t.Fatal(err)
	}
	if got, want := addressSet(row["tunnel_key"], 6), "_rtr_lb_16711679_ip6"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
