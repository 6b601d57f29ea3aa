// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// crowd is the number of Services in a burst. The pool has exactly one address per Service: a leaked address leaves a
// Service pending.
const crowd = 100

const tight = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: tight}
spec: {addresses: ["10.62.4.0-10.62.4.99"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: tight}
spec: {physicalNetwork: physnet, ipAddressPools: [tight], subnets: [{cidr: 10.62.0.0/16, gateway: 10.62.0.1}]}
`

// burst is a set of Services that 16 creators create, retrying on API server errors.
type burst struct {
	creating errgroup.Group
	done     atomic.Int32
}

// burst starts to create Services web-<from> up to but not including web-<to>. It calls touch, if not nil, for each
// Service once the Service exists.
func (c *cluster) burst(t *testing.T, from, to int, touch func(ctx context.Context, name string) error) *burst {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	b := &burst{}
	var next atomic.Int32
	next.Store(int32(from))
	for range 16 {
		b.creating.Go(func() error {
			for i := int(next.Add(1)) - 1; i < to; i = int(next.Add(1)) - 1 {
				name := fmt.Sprintf("web-%d", i)
				if err := c.insist(ctx, name, i); err != nil {
					return err
				}
				if touch != nil {
					if err := touch(ctx, name); err != nil {
						return err
					}
				}
				b.done.Add(1)
			}
			return nil
		})
	}
	return b
}

// podOf returns the backend address of the i-th Service. The first 253 are on node n1.
func podOf(i int) netip.Addr {
	i += 3 // skip the network address, the router's and the node's
	return netip.AddrFrom4([4]byte{10, 244, byte(1 + i>>8), byte(i)})
}

// insist creates a Service with a backend, and retries until it exists.
func (c *cluster) insist(ctx context.Context, name string, i int) error {
	port, ready, node, none := int32(8080), true, "n1", false
	portName := "http"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns,
			Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{podOf(i).String()},
			NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec: corev1.ServiceSpec{
			Type:                          corev1.ServiceTypeLoadBalancer,
			AllocateLoadBalancerNodePorts: &none,
			Ports:                         []corev1.ServicePort{{Name: portName, Port: 80, TargetPort: intstr.FromInt32(port)}},
		},
	}
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if _, last = c.client.DiscoveryV1().EndpointSlices(ns).Create(ctx, slice, metav1.CreateOptions{}); last != nil &&
			!errors.IsAlreadyExists(last) {
			return false, nil
		}
		_, last = c.client.CoreV1().Services(ns).Create(ctx, service, metav1.CreateOptions{})
		return last == nil || errors.IsAlreadyExists(last), nil
	})
	if err != nil {
		return fmt.Errorf("create %s: %w (last answer: %w)", name, err, last)
	}
	return nil
}

// reach waits until n Services have been created.
func (b *burst) reach(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d Services are created", n), func() bool { return int(b.done.Load()) >= n })
}

func (b *burst) wait(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- b.creating.Wait() }()
	if err := await.Receive(t, "the creators of the burst end", ended); err != nil {
		t.Fatal(err)
	}
}

// scene is a cluster with the pool, databases and observer of a burst.
type scene struct {
	*cluster
	*ovn
	*observer
	binary string
	bare   string // the northbound database without our rows
}

func (c *cluster) scene(t *testing.T) *scene {
	t.Helper()
	return c.sceneOn(t, databases(t))
}

func (c *cluster) sceneOn(t *testing.T, o *ovn) *scene {
	t.Helper()
	s := &scene{cluster: c, ovn: o, binary: c.build(t)}
	s.bare = s.dump(t)
	s.vacant(t)
	c.apply(t, tight)
	s.observer = c.observe(t)
	return s
}

// allServed waits until each Service of the burst has an address of its own, and the pool and OVN have exactly those
// addresses.
func (s *scene) allServed(t *testing.T) {
	t.Helper()
	eventually(t, "all have an address", func() bool { return s.holders() == crowd })
	s.pool(t, crowd, 0)
	eventually(t, "each address has a row in OVN, and none has two", func() bool {
		vips := strings.Fields(s.nbctl(t, "--bare", "--columns=vips", "find", "Load_Balancer",
			`external_ids:"k8s.ovn.org/owner-type"=Service`))
		unique := map[string]bool{}
		for _, v := range vips {
			unique[strings.SplitN(v, "=", 2)[0]] = true
		}
		return len(vips) == crowd && len(unique) == crowd
	})
}

// pool waits until the status of the pool has these counts.
func (s *scene) pool(t *testing.T, assigned, available int) {
	t.Helper()
	want, got := fmt.Sprintf("%d/%d", assigned, available), ""
	defer func() {
		if got != want {
			t.Logf("the status of the pool is %s, want %s", got, want)
		}
	}()
	eventually(t, "the pool counts assigned/available "+want, func() bool {
		got = s.field(t, "ipaddresspools", "tight", "{.status.assignedIPv4}/{.status.availableIPv4}")
		return got == want
	})
}

// nothingLeft deletes all Services and waits until no trace of them is left.
func (s *scene) nothingLeft(t *testing.T) {
	t.Helper()
	s.clearServices(t)
	eventually(t, "no Service has an address", func() bool { return s.holders() == 0 })
	s.pool(t, 0, crowd)
	eventually(t, "no load balancers", func() bool { return len(s.loadBalancers(t)) == 0 })
	s.deleteAll(t, "l2domains")
	s.bareAgain(t)
}

// bareAgain waits until the northbound database equals its initial state.
func (s *scene) bareAgain(t *testing.T) {
	t.Helper()
	now := ""
	defer func() {
		if t.Failed() {
			t.Logf("before - and after +:\n%s", cmp.Diff(s.bare, now))
		}
	}()
	eventually(t, "nothing of ours in OVN", func() bool {
		now = s.dump(t)
		return now == s.bare
	})
}

// strictly checks that no two Services ever had the same address, and that no address ever changed.
func (s *scene) strictly(t *testing.T) {
	t.Helper()
	for _, d := range s.doubles() {
		t.Errorf("two Services with one address: %v", d)
	}
	for who, n := range s.moves() {
		t.Errorf("%s had %d addresses, one after the other", who.name, n)
	}
}
