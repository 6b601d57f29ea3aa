// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

// brEx contains flows of a br-ex with two Service addresses, as printed by Open vSwitch 3.6.
const brEx = `cookie=0xdeff105, duration=5s, n_packets=1, n_bytes=42, priority=110,arp,in_port=1,arp_tpa=172.18.0.100,arp_op=1,actions=output:3,LOCAL
cookie=0xdeff105, duration=5s, n_packets=0, n_bytes=0, priority=110,icmp6,in_port=1,icmp_type=135,icmp_code=0,nd_target=fd00:18::100,actions=LOCAL
cookie=0xdeff105, duration=5s, n_packets=0, n_bytes=0, priority=110,arp,in_port=1,arp_tpa=172.18.0.101,arp_op=1,actions=NORMAL
duration=5s, n_packets=0, n_bytes=0, priority=0,actions=NORMAL
table_id=1, duration=5s, n_packets=0, n_bytes=0, priority=100,arp,arp_tpa=172.18.0.102,actions=LOCAL
`

// The flows come from a daemon that speaks the protocol of ovs-vswitchd. The lab verifies that the real daemon prints
// such flows.
func TestBridgeReportListsStaleFlows(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "ovs-vswitchd.7.ctl"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go answerFlows(listener)
	patches := map[string]int{"slb-lan-localnet": 3}
	networks := func() (map[string]ovn.Uplinks, bool) {
		return map[string]ovn.Uplinks{"physnet": {Bridge: "br-ex", Patches: patches}}, true
	}
	var reports []map[string]convert.Localnet
	b := newBridges(networks, ovn.Endpoint{Address: "unix:" + filepath.Join(dir, "db.sock")},
		func(found map[string]convert.Localnet) {
			reports = append(reports, found)
		})
	b.check(t.Context())
	b.check(t.Context())
	patches = map[string]int{"slb-lan-localnet": 4}
	b.check(t.Context())
	patches = nil
	b.check(t.Context())
	v4, v6 := netip.MustParseAddr("172.18.0.100"), netip.MustParseAddr("fd00:18::100")
	want := []map[string]convert.Localnet{
		{"slb-lan-localnet": {Bridge: "br-ex", Stale: []netip.Addr{v6}}},
		{"slb-lan-localnet": {Bridge: "br-ex", Stale: []netip.Addr{v4, v6}}},
		{},
	}
	if d := cmp.Diff(want, reports, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Errorf("reports (-want +got):\n%s", d)
	}
}

// While the flows can't be read, nothing is reported and the last report remains valid.
func TestBridgeReportIsKeptWhileFlowsAreUnreadable(t *testing.T) {
	networks := func() (map[string]ovn.Uplinks, bool) {
		return map[string]ovn.Uplinks{"physnet": {Bridge: "br-ex", Patches: map[string]int{"slb-lan-localnet": 3}}}, true
	}
	b := newBridges(networks, ovn.Endpoint{Address: "unix:" + filepath.Join(t.TempDir(), "db.sock")},
		func(found map[string]convert.Localnet) {
			t.Errorf("reported %v", found)
		})
	b.check(t.Context())
	if _, err := b.dump(t.Context(), "br-ex"); err == nil {
		t.Error("flows without a daemon")
	}
}

// If Open vSwitch's database can't be read, the report is withdrawn as if the flows could not be read.
func TestBridgeReportIsWithdrawnWithoutDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := true
		networks := func() (map[string]ovn.Uplinks, bool) { return map[string]ovn.Uplinks{}, known }
		var reports []map[string]convert.Localnet
		b := newBridges(networks, ovn.Endpoint{}, func(found map[string]convert.Localnet) {
			reports = append(reports, found)
		})
		b.check(t.Context())
		known = false
		<-time.After(unreadableAfter)
		b.check(t.Context())
		if len(reports) != 1 || reports[0] == nil {
			t.Errorf("after %s: %v", unreadableAfter, reports)
		}
		<-time.After(time.Second)
		b.check(t.Context())
		b.check(t.Context())
		if len(reports) != 2 || reports[1] != nil {
			t.Errorf("a second later: %v", reports)
		}
		known = true
		b.check(t.Context())
		if len(reports) != 3 || reports[2] == nil {
			t.Errorf("the database is back: %v", reports)
		}
	})
}

// Each pod of a node changes Open vSwitch's database. Flows are not dumped for each of them: that takes the main thread
// of ovs-vswitchd. A new port of OVN does not wait, and no change is forgotten.
func TestFlowsAreDumpedSeldomForOtherPorts(t *testing.T) {
	const dump = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var patches atomic.Pointer[map[string]int]
		patches.Store(&map[string]int{"slb-lan-localnet": 3})
		b := newBridges(func() (map[string]ovn.Uplinks, bool) {
			return map[string]ovn.Uplinks{"physnet": {Bridge: "br-ex", Patches: *patches.Load()}}, true
		}, ovn.Endpoint{}, func(map[string]convert.Localnet) {})
		var dumps atomic.Int64
		b.dump = func(ctx context.Context, _ string) (string, error) {
			dumps.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(dump):
			}
			return brEx, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go b.run(ctx)
		for range 90 {
			select {
			case b.changed <- struct{}{}:
			default:
			}
			<-time.After(dump / 10)
		}
		synctest.Wait()
		if n := dumps.Load(); n != 1 {
			t.Errorf("%d dumps for 90 changes, want one", n)
		}
		<-time.After(2 * dump)
		synctest.Wait()
		if n := dumps.Load(); n != 2 {
			t.Errorf("%d dumps after the rest, want one more", n)
		}
		<-time.After(dump)
		patches.Store(&map[string]int{"slb-lan-localnet": 4})
		b.changed <- struct{}{}
		synctest.Wait()
		if n := dumps.Load(); n != 3 {
			t.Errorf("%d dumps with another port, want one more", n)
		}
	})
}

func answerFlows(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		var request struct{ Method string }
		answer := map[string]any{"id": 0, "result": brEx, "error": nil}
		if json.NewDecoder(conn).Decode(&request) != nil || request.Method != "bridge/dump-flows" {
			answer = map[string]any{"id": 0, "result": nil, "error": "no such command"}
		}
		_ = json.NewEncoder(conn).Encode(answer) // the client detects a missing answer
		conn.Close()
	}
}
