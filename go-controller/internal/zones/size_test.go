// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// etcdLimit is the default of etcd's --max-request-bytes.
const etcdLimit = 1536 << 10

// wide returns the plan of a Service whose endpoints are on nodes with names of the given length. Every second endpoint
// takes new connections, or all of them do.
func wide(ports, endpoints, nodeName int, all bool) *plan.Service {
	p := &plan.Service{Key: world.Key{Namespace: "wide", Name: "web"}, VIPs: []plan.VIP{{
		Addr: netip.MustParseAddr("2001:db8:1234:5678:9abc:def0:1234:5678"), Shard: world.ShardID{Domain: "lan"}}}}
	for port := range ports {
		l := plan.Listener{VIP: p.VIPs[0].Addr, Protocol: world.TCP, Port: uint16(10000 + port)}
		for e := range endpoints {
			addr := netip.MustParseAddr(fmt.Sprintf("fd00:1234:5678:9abc:1ef0:1234:5678:%x", 4096+e))
			b := plan.Backend{Addr: netip.AddrPortFrom(addr, l.Port), Node: fmt.Sprintf("%0*d", nodeName, e)}
			if all || e%2 == 1 || endpoints == 1 {
				l.Backends = append(l.Backends, b)
			} else {
				l.Draining = append(l.Draining, b)
			}
		}
		p.Listeners = append(p.Listeners, l)
	}
	return p
}

func encodedSize(t *testing.T, spec *v1alpha1.ServicePlanSpec) int {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// The plan of a Service within the limit of 8,000 backends fits into etcd, whatever its nodes are called and however
// many of its endpoints are draining.
func TestEveryPlanFitsIntoEtcd(t *testing.T) {
	for _, c := range []struct {
		ports, endpoints, nodeName int
		draining, served           bool // in the plan in which half of the endpoints are draining
	}{
		{80, 100, 45, true, true},
		{80, 100, 60, false, true},  // with slots of the others for those that drain
		{80, 100, 120, false, true}, // without these slots
		{8000, 1, 10, false, true},
		{1, 8000, 250, false, true},
		{8000, 1, 60, false, false},
	} {
		t.Run(fmt.Sprintf("%d ports, %d endpoints, node names of %d bytes", c.ports, c.endpoints, c.nodeName),
			func(t *testing.T) {
				before := Encode(wide(c.ports, c.endpoints, c.nodeName, true), nil)
				spec, err := Fit(wide(c.ports, c.endpoints, c.nodeName, false), &before)
				if size := encodedSize(t, &spec); size > etcdLimit || size > sizeOf(&spec) {
					t.Errorf("%d bytes, estimated %d", size, sizeOf(&spec))
				}
				if drains := len(spec.Listeners) > 0 && spec.Listeners[0].Draining != nil; drains != c.draining {
					t.Errorf("has draining backends: %t", drains)
				}
				if (err == nil) != c.served || (len(spec.Listeners) > 0) != c.served {
					t.Errorf("%d listeners, error %v", len(spec.Listeners), err)
				}
				if c.served && 2*len(spec.Listeners[0].Backends) < c.endpoints {
					t.Errorf("%d backends", len(spec.Listeners[0].Backends))
				}
			})
	}
}

// The estimated size is that of the JSON, and not much more.
func TestSizeOfAPlan(t *testing.T) {
	p := wide(3, 4, 10, false)
	p.SessionAffinity, p.ConnectionsMayEnd = true, true
	p.SourceRanges = map[world.Family][]netip.Prefix{world.IPv4: nil, world.IPv6: {netip.MustParsePrefix("fd00::/8")}}
	p.Listeners[0].Backends[0].HostNetwork = true
	for range 100 {
		p.VIPs = append(p.VIPs, p.VIPs[0])
		p.SourceRanges[world.IPv4] = append(p.SourceRanges[world.IPv4], netip.MustParsePrefix("192.0.2.128/25"))
	}
	spec := Encode(p, nil)
	managed := 0
	for _, v := range spec.VIPs {
		managed += len(fmt.Sprintf(`"k:{\"address\":\"%s\"}":{".":{},"f:address":{},"f:l2Domain":{},"f:shard":{}},`,
			v.Address))
	}
	size := encodedSize(t, &spec) + managed
	if got := sizeOf(&spec); got < size || got > size+size/10 {
		t.Errorf("estimated %d, but has %d", got, size)
	}
	if _, err := Fit(wide(8000, 1, 250, true), nil); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("error %v", err)
	}
}
