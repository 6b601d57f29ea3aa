// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func meddled(t *testing.T, r *running) {
	held := r.settled(2 * services)
	node := held[slices.SortedFunc(maps.Keys(held), netip.Addr.Compare)[0]]
	addrs := pair(t, held, node)
	ip := func(args ...string) string {
		out, err := r.IP(t.Context(), node, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// Addresses like the egress addresses of OpenShift SDN, and addresses of other owners.
	foreign := []string{"10.50.0.240/32", "10.50.0.241/32", "fd00:50::f0/128"}
	ip("addr", "add", foreign[0], "dev", "eth1", "label", "eth1:eip")
	ip("addr", "add", foreign[1], "dev", "eth1")
	ip("addr", "add", foreign[2], "dev", "eth1", "nodad")
	for _, a := range addrs {
		ip("addr", "del", netip.PrefixFrom(a, a.BitLen()).String(), "dev", "eth1")
	}
	both := func(context.Context) error {
		has, err := r.Kernel(node)
		if err == nil && (!has[addrs[0]] || !has[addrs[1]]) {
			err = fmt.Errorf("%v are not all back", addrs)
		}
		return err
	}
	r.await("addresses that were removed", both)

	r.kubectl("annotate", "--overwrite", "node", node, v1alpha1.AnnotationVIPs+`=[{"ip":"10.50.0.300"}]`)
	r.await("annotation rewritten", func(ctx context.Context) error {
		now, err := r.Held(ctx)
		if err == nil && !maps.Equal(now, held) {
			err = errors.New("the addresses are not as before")
		}
		return err
	})
	r.await("event about the annotation", func(ctx context.Context) error {
		out, err := r.Plane.Get(ctx, "events", "default", "",
			`{.items[?(@.reason=="`+v1alpha1.EventVIPsUnreadable+`")].message}`)
		if err == nil && !strings.Contains(out, `"10.50.0.300" is no address`) {
			err = fmt.Errorf("events are %q", out)
		}
		return err
	})
	// An annotation that can be parsed but has different contents.
	r.kubectl("annotate", "node", node, v1alpha1.AnnotationVIPs+"-")
	r.await("annotation rewritten", func(ctx context.Context) error {
		now, err := r.Held(ctx)
		if err == nil && !maps.Equal(now, held) {
			err = errors.New("the addresses are not as before")
		}
		return errors.Join(err, both(ctx))
	})
	for _, a := range foreign {
		if out := ip("-o", "addr", "show", "dev", "eth1"); !strings.Contains(out, " "+a+" ") {
			t.Errorf("%s is gone", a)
		}
		ip("addr", "del", a, "dev", "eth1")
	}
	r.settled(2 * services)
}

// taken checks that addresses of another program on a node, like egress addresses of OpenShift SDN, are given to no
// Service, and stay as they are.
func taken(t *testing.T, r *running) {
	before := r.settled(2 * services)
	if err := r.AddServices(t.Context(), "taken", 1); err != nil {
		t.Fatal(err)
	}
	node, requested := "", []string{}
	for a, by := range r.settled(2*services + 2) {
		if before[a] == "" {
			node, requested = by, append(requested, a.String())
		}
	}
	again, err := r.Client.CoreV1().Services("default").Get(t.Context(), "taken-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again.ObjectMeta = metav1.ObjectMeta{Name: again.Name,
		Annotations: map[string]string{v1alpha1.AnnotationLoadBalancerIPs: strings.Join(requested, ",")}}
	again.Spec.ClusterIP, again.Spec.ClusterIPs = "", nil
	r.kubectl("delete", "service", again.Name)
	r.settled(2 * services)

	ip := func(args ...string) string {
		out, err := r.IP(t.Context(), node, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	foreign := map[string]string{} // what the kernel reports, by address
	for _, a := range requested {
		args := []string{"addr", "add", netip.PrefixFrom(netip.MustParseAddr(a), netip.MustParseAddr(a).BitLen()).String(),
			"dev", "eth1"}
		if strings.Contains(a, ":") {
			args = append(args, "nodad")
		} else {
			args = append(args, "label", "eth1:eip")
		}
		ip(args...)
		foreign[a] = ip("-o", "addr", "show", "dev", "eth1", "to", a)
	}
	unchanged := func(when string) {
		t.Helper()
		for a, want := range foreign {
			if now := ip("-o", "addr", "show", "dev", "eth1", "to", a); now != want {
				t.Errorf("%s: %q, want %q", when, now, want)
			}
		}
	}
	r.namesInPools(requested)
	if _, err := r.Client.CoreV1().Services("default").Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.await("Service "+again.Name+" does not get the addresses", func(ctx context.Context) error {
		s, err := r.Client.CoreV1().Services("default").Get(ctx, again.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "an address of node") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	unchanged("requested")
	r.kubectl("delete", "service", again.Name)
	r.await("addresses no longer assigned", func(ctx context.Context) error {
		now, err := r.Held(ctx)
		if err == nil && !maps.Equal(now, before) {
			err = fmt.Errorf("%d addresses are assigned", len(now))
		}
		return err
	})
	unchanged("no longer requested")
	for a := range foreign {
		ip("addr", "del", a, "dev", "eth1")
	}
	r.settled(2 * services)
}

// namesInPools waits until the statuses of pools name addresses.
func (r *running) namesInPools(addrs []string) {
	r.await("the pool names the addresses", func(ctx context.Context) error {
		out, err := r.Plane.Kubectl(ctx, "get", "ipaddresspools.slb.k8s.ovn.org", "-o", "json")
		for _, a := range addrs {
			if err == nil && !strings.Contains(out, a) {
				err = fmt.Errorf("%s is not in %s", a, out)
			}
		}
		return err
	})
}
