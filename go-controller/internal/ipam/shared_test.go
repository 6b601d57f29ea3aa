// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

var sharedAt = time.Unix(1_700_000_000, 0)

// sharing returns a Service with a sharing key and many ports and addresses of spec.externalIPs.
func sharing(namespace, name string, age int, first, ports, addresses int) *world.Service {
	s := &world.Service{Key: world.Key{Namespace: namespace, Name: name},
		Created:  sharedAt.Add(time.Duration(-age) * time.Hour),
		Families: []world.Family{world.IPv4}, SharingKey: "key"}
	for i := range ports {
		s.Ports = append(s.Ports, world.Port{Protocol: world.TCP, Port: uint16(first + i)})
	}
	a := netip.MustParseAddr("10.60.0.0")
	for range addresses {
		a = a.Next()
		s.ExternalIPs = append(s.ExternalIPs, a)
	}
	return s
}

// allocateShared allocates from a pool that serves spec.externalIPs.
func allocateShared(services ...*world.Service) *Allocation {
	return Allocate(snapshotShared(services...), noShard)
}

func snapshotShared(services ...*world.Service) *world.Snapshot {
	return &world.Snapshot{Now: sharedAt, Services: services, Pools: []*world.Pool{{Name: "external", ExternalIPs: true,
		AutoAssign: true, Created: sharedAt,
		Ranges: []netipx.IPRange{netipx.MustParseIPRange("10.60.0.0-10.60.255.255")}}}}
}

func noShard(string, netip.Addr) (id world.ShardID, ok bool) { return id, false }

// A tenant has Services that share thousands of addresses of spec.externalIPs and have thousands of ports. The work is
// bounded, Services that had the addresses keep theirs first, and those of other namespaces do not notice.
func TestSharedExternalsAreBounded(t *testing.T) {
	const ports, addresses = 2000, 2500
	old, held := sharing("one", "old", 9, 1, ports, addresses), sharing("one", "held", 1, 10_001, ports, addresses)
	held.HeldExternalIPs = held.ExternalIPs[addresses-10:]
	late := sharing("one", "new", 8, 20_001, ports, addresses)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := allocateShared(old, late, held, sharing("two", "other", 0, 80, 1, 0))
	runtime.ReadMemStats(&after)
	const most = 64 << 20
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("took %d MB, want at most %d", took>>20, most>>20)
	}
	for name, want := range map[string]int{"old": addresses, "held": 10, "new": 15} {
		got := d.Services[world.Key{Namespace: "one", Name: name}]
		if len(got.External) != want {
			t.Errorf("%s: %d addresses of spec.externalIPs, want %d: %s", name, len(got.External), want, got.Message)
		}
		if refused := strings.Contains(got.Message, "exceed the limit of 100000"); refused != (want < addresses) {
			t.Errorf("%s: message %q", name, got.Message)
		}
	}
	if got := d.Services[world.Key{Namespace: "two", Name: "other"}]; len(got.Addrs) != 1 {
		t.Errorf("the Service of the other tenant has no address: %+v", got)
	}
}

// The Services of a namespace get a limited number of addresses of spec.externalIPs: with BGP, each is a route of each
// node. Those of other namespaces, and what a Service has already, do not depend on it.
func TestExternalsOfANamespaceAreLimited(t *testing.T) {
	const services, addresses = 6, 2000
	var all []*world.Service
	for i := range services {
		s := sharing("one", string(rune('a'+i)), services-i, 80, 1, services*addresses)
		s.SharingKey, s.ExternalIPs = "", s.ExternalIPs[i*addresses:(i+1)*addresses]
		all = append(all, s)
	}
	last := all[services-1]
	last.HeldExternalIPs = last.ExternalIPs[:500]
	other := sharing("two", "other", 0, 80, 1, services*addresses+1)
	other.ExternalIPs = other.ExternalIPs[services*addresses:]
	d := allocateShared(append(all, other)...)
	for i, want := range []int{addresses, addresses, addresses, addresses, addresses - 500, 500} {
		got := d.Services[all[i].Key]
		if len(got.External) != want {
			t.Errorf("Service %d: %d addresses of spec.externalIPs, want %d: %s", i, len(got.External), want, got.Message)
		}
		if refused := strings.Contains(got.Message, `namespace "one" have 10000 addresses`); refused != (want < addresses) {
			t.Errorf("Service %d: message %q", i, got.Message)
		}
	}
	if got := d.Services[other.Key]; len(got.External) != 1 {
		t.Errorf("the Service of the other tenant: %+v", got)
	}
}

// Addresses that a Service no longer lists count until its status no longer shows them: it may list them again.
func TestExternalsThatAreReservedCount(t *testing.T) {
	var all []*world.Service
	for i := range 5 {
		s := sharing("one", fmt.Sprint(i), 5-i, 80, 1, 5*2400)
		s.SharingKey, s.ExternalIPs = "", s.ExternalIPs[i*2400:][:2400]
		if i < 4 {
			s.HeldExternalIPs, s.ExternalIPs = s.ExternalIPs, nil
		}
		all = append(all, s)
	}
	if n := len(allocateShared(all...).Services[all[4].Key].External); n != 400 {
		t.Errorf("%d addresses, want 400: four Services have 9600", n)
	}
}

// A Service that may share none of the addresses takes nothing from younger ones of its namespace. The work for it is
// bounded all the same.
func TestRefusedExternalsTakeNothingFromYoungerServices(t *testing.T) {
	const addresses = 2500
	old, refused := sharing("one", "old", 9, 1, 10, addresses), sharing("one", "refused", 8, 10, 2000, addresses)
	d := allocateShared(old, refused, sharing("one", "young", 7, 5001, 10, addresses))
	for name, want := range map[string]int{"old": addresses, "refused": 0, "young": addresses} {
		got := d.Services[world.Key{Namespace: "one", Name: name}]
		if len(got.External) != want {
			t.Errorf("%s: %d addresses of spec.externalIPs, want %d: %s", name, len(got.External), want, got.Message)
		}
	}
	if n, most := d.allocator.refusedPorts[1], maxSharedExternals/3+len(refused.Ports); n > most {
		t.Errorf("%d ports compared for the refused Service, want at most %d", n, most)
	}
}

// Nor does a message about each address make the work for Services that may share none of thousands.
func TestRefusedExternalsOfManyServicesAreBounded(t *testing.T) {
	var all []*world.Service
	for i := range 300 {
		all = append(all, sharing("one", fmt.Sprint(i), 300-i, 80, 1, 2500))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := allocateShared(all...)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("took %d MB", took>>20)
	}
	if n := len(d.Services[all[0].Key].External); n != 2500 {
		t.Errorf("the first Service has %d addresses", n)
	}
}

// A tenant writes selectors of a megabyte, and others wait while they are hashed. That is done once for a Service, and
// not at all unless one of the Services that share an address has externalTrafficPolicy: Local.
func TestSelectorsAreHashedOnce(t *testing.T) {
	const services = 20
	for local, want := range map[int]int{0: 0, 1: services, services: services} {
		var all []*world.Service
		hashed := 0
		for i := range services {
			s := sharing("one", fmt.Sprint(i), services-i, 80+i, 1, 0)
			s.LocalPolicy, s.Selector = i < local, map[string]string{"app": "web"}
			kept := ""
			s.SelectorHash = func(compute func() string) string {
				if kept == "" {
					hashed++
					kept = compute()
				}
				return kept
			}
			all = append(all, s)
		}
		for range 2 {
			d := allocateShared(all...)
			for _, s := range all {
				if addrs := d.Services[s.Key].Addrs; len(addrs) != 1 || addrs[0] != d.Services[all[0].Key].Addrs[0] {
					t.Fatalf("%d of them Local: %s has %v", local, s.Key, addrs)
				}
			}
		}
		if hashed != want {
			t.Errorf("%d of %d Local: %d selectors were hashed in two passes, want %d", local, services, hashed, want)
		}
	}
}

// A Service of thousands of ports that can share no address is compared in each pass. It examines addresses of Services
// with few ports all the same.
func TestPortsComparedToShareAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		addresses, ports int
		shares           bool
	}{
		"few addresses":            {maxComparedPorts/2000 - 1, 2000, true},
		"addresses with few ports": {maxShareable - 1, maxComparedPorts / maxShareable, true},
		"too many ports":           {maxComparedPorts/2000 + 2, 2000, false},
		"too many addresses":       {maxShareable + 1, 10, false},
	} {
		const common = 1
		late := sharing("one", "late", 0, 20_000, 2000, 0)
		var all []*world.Service
		for i := range c.addresses { // each with a port of its own that late uses, too, so that none is skipped
			s := sharing("one", fmt.Sprint(i), 1000-i, 10_000, c.ports-2, 0)
			s.Ports = append(s.Ports, world.Port{Protocol: world.TCP, Port: common},
				world.Port{Protocol: world.TCP, Port: late.Ports[len(late.Ports)-1-i].Port})
			all = append(all, s)
		}
		last := sharing("one", "last", 1, common, 1, 0)
		d := allocateShared(append(all, last, late)...)
		with := d.Services[last.Key].Addrs[0]
		if got := d.Services[late.Key].Addrs; len(got) != 1 || got[0] == with != c.shares {
			t.Errorf("%s: the Service has %v, and the one with which it can share %s", name, got, with)
		}
	}
}
