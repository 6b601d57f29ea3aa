// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// crowd returns n Services with the given number of backends each, all listening on the same ports.
func crowd(n, shards, backends int) []*plan.Service {
	var plans []*plan.Service
	for i := range n {
		var addrs []string
		for j := range backends {
			k := i*backends + j
			addrs = append(addrs, fmt.Sprintf("10.%d.%d.%d", 128+k>>16, k>>8&255, k&255))
		}
		plans = append(plans, service(i, shards, addrs...))
	}
	return plans
}

// Services that take several transactions are written, found again, and removed. Benchmarks have thousands.
func TestManyServices(t *testing.T) {
	t.Parallel()
	const shards = 8
	s := serve(t, schema)
	s.clusterRows(t)
	d, _ := dial(t, s)
	configure(t, d, topology(shards))
	plans := crowd(600, shards, 4)

	before := s.transactions(t)
	apply(t, d, plans...)
	if n := s.transactions(t) - before; n < 2 {
		t.Errorf("%d transactions, want several", n)
	}
	prune(t, d, plans...)

	before = s.transactions(t)
	apply(t, d, plans...)
	if n := s.transactions(t); n != before {
		t.Errorf("applied again: %d transactions, want none", n-before)
	}

	remove(t, d, plans...)
	configure(t, d, topology(0))
}

// large returns a database of a cluster with 2,000 nodes and 10,000 Services of ours, each with one address, one port
// and 20 backends.
func large(b *testing.B, shards int) (*server, *Dataplane, []*plan.Service) {
	b.Helper()
	s := serve(b, schema)
	s.clusterRows(b)
	for i := range 20 {
		var ports []string
		for j := range 300 {
			ports = append(ports, "--", "lrp-add", "GR", fmt.Sprint("port", i*300+j), "0a:00:00:00:00:01",
				fmt.Sprintf("100.65.%d.%d/16", i, j%250+1))
		}
		s.nbctl(b, append([]string{"--may-exist", "lr-add", "GR"}, ports...)...)
	}
	s.manyNodes(b)
	d, _ := dial(b, s)
	configure(b, d, largeTopology(shards))
	plans := crowd(10000, shards, 20)
	for _, p := range plans {
		thin(p)
	}
	start := time.Now()
	apply(b, d, plans...)
	b.Logf("10,000 Services written in %s", time.Since(start).Round(time.Millisecond))
	prune(b, d, plans...)
	return s, d, plans
}

// many is the number of nodes that run the pods of the largest crowd, with 256 pods per node.
const many = 10000 * 20 / 256

// manyNodes inserts the rows that OVN-Kubernetes creates for these nodes.
func (s *server) manyNodes(b *testing.B) {
	b.Helper()
	var ports []string
	for i := range many + 1 {
		name, subnet := nodeOf(netip.AddrFrom4([4]byte{10, byte(128 + i>>8), byte(i), 1})),
			fmt.Sprintf("10.%d.%d.1/24", 128+i>>8, i&255)
		ports = append(ports, "--", "lrp-add", "ovn_cluster_router", "rtos-"+name, "0a:00:00:00:00:01", subnet,
			"--", "lrp-add", "GR", "rtoj-GR_"+name, "0a:00:00:00:00:01", fmt.Sprintf("100.64.%d.%d/16", 1+i>>8, i&255))
	}
	s.nbctl(b, append([]string{"--may-exist", "lr-add", "GR"}, ports...)...)
}

func largeTopology(shards int) *plan.Topology {
	f := topology(shards)
	for i := range many + 1 {
		f.Nodes = append(f.Nodes, plan.Node{Name: nodeOf(netip.AddrFrom4([4]byte{10, byte(128 + i>>8), byte(i), 1})),
			Chassis: fmt.Sprint("chassis-", i)})
	}
	return f
}

func thin(p *plan.Service) *plan.Service {
	p.VIPs, p.Listeners = p.VIPs[:1], p.Listeners[:1]
	return p
}

// BenchmarkOneEndpoint replaces one backend of one Service.
func BenchmarkOneEndpoint(b *testing.B) {
	for _, shards := range []int{1, 8} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			_, d, _ := large(b, shards)
			n := 0
			for b.Loop() {
				n++
				apply(b, d, thin(service(5000, shards, "10.7.0.1", fmt.Sprintf("10.8.%d.%d", n>>8&255, n&255))))
			}
		})
	}
}

// BenchmarkStart starts a new process on a database that needs no changes.
func BenchmarkStart(b *testing.B) {
	const shards = 8
	s, _, plans := large(b, shards)
	written := s.transactions(b)
	for b.Loop() {
		start := time.Now()
		d, _ := dial(b, s)
		read := time.Since(start)
		configure(b, d, largeTopology(shards))
		apply(b, d, plans...)
		applied := time.Since(start)
		prune(b, d, plans...)
		b.Logf("read in %s, applied after %s, pruned after %s", read.Round(time.Millisecond),
			applied.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	}
	if n := s.transactions(b); n != written {
		b.Errorf("%d transactions, want none", n-written)
	}
}
