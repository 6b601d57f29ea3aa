// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	await.True(t, what, ok)
}

// settled waits until the statuses of pools and domains are complete and nothing more is written, and returns the
// counts.
func (c *cluster) settled(t *testing.T, counts func() [2]int) [2]int {
	t.Helper()
	await.NoError(t, "the statuses agree with those of the Services", func(context.Context) error {
		if lacking := c.incomplete(t); lacking != "" {
			return errors.New(lacking)
		}
		return nil
	})
	return quiet(t, counts)
}

// quiet waits until nothing has been written for a while, and returns the counts. A machine that stands still for
// seconds writes nothing meanwhile: of the time between two looks, no more than a step counts.
func quiet(t *testing.T, counts func() [2]int) [2]int {
	t.Helper()
	const step = quietPeriod / 16
	last, looked, still := counts(), time.Now(), time.Duration(0)
	eventually(t, "nothing more is written", func() bool {
		still += min(time.Since(looked), step)
		looked = time.Now()
		if now := counts(); now != last {
			last, still = now, 0
		}
		return still > quietPeriod
	})
	return last
}

// incomplete returns how the statuses of pools and domains differ from what those of the Services and the claims of
// shards imply; empty if they agree. They are written with the next full pass, which may come seconds later.
func (c *cluster) incomplete(t *testing.T) string {
	t.Helper()
	services, err := c.client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held, announced := map[string]bool{}, true // the addresses, and whether each Service that has one is announced
	for _, s := range services.Items {
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			held[ingress.IP] = true
			announced = announced && meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionAnnounced)
		}
	}
	assigned := 0
	pools := listed[v1alpha1.IPAddressPool](t, c, "ipaddresspools")
	for _, p := range pools {
		if is := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionAccepted); is == nil ||
			is.ObservedGeneration != p.Generation {
			return "pool " + p.Name + " is not accepted as it is"
		}
		assigned += int(p.Status.AssignedIPv4 + p.Status.AssignedIPv6)
	}
	if len(pools) > 0 && assigned != len(held) {
		return fmt.Sprintf("pools count %d addresses, Services have %d", assigned, len(held))
	}
	for _, d := range listed[v1alpha1.L2Domain](t, c, "l2domains") {
		if why := incompleteDomain(t, &d, pools, announced); why != "" {
			return why
		}
	}
	return ""
}

// listed returns all objects of a kind of ours.
func listed[T any](t *testing.T, c *cluster, resource string) []T {
	t.Helper()
	list, err := c.dynamic.Resource(v1alpha1.GroupVersion().WithResource(resource)).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]T, len(list.Items))
	for i, o := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// incompleteDomain returns how the status of a domain differs from those of the pools; empty if they agree. announced
// says that all Services are.
func incompleteDomain(t *testing.T, d *v1alpha1.L2Domain, pools []v1alpha1.IPAddressPool, announced bool) string {
	t.Helper()
	if is := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionAccepted); is == nil ||
		is.ObservedGeneration != d.Generation {
		return "domain " + d.Name + " is not accepted as it is"
	}
	want, have := 0, 0
	for _, p := range pools {
		if announces(t, &d.Spec, &p) {
			want += int(p.Status.AssignedIPv4 + p.Status.AssignedIPv6)
		}
	}
	for _, s := range d.Status.Shards {
		have += int(s.Addresses)
		// The gateway that has claimed a shard becomes its first one when the claim has settled.
		if s.Active == "" && announced || s.Active != "" && (len(s.Gateways) == 0 || s.Gateways[0] != s.Active) {
			return fmt.Sprintf("domain %s: shard %d is active on %q, its gateways are %v", d.Name, s.Index, s.Active,
				s.Gateways)
		}
	}
	if have != want {
		return fmt.Sprintf("domain %s counts %d addresses, its pools %d", d.Name, have, want)
	}
	return ""
}

// announces reports whether a domain announces a pool.
func announces(t *testing.T, d *v1alpha1.L2DomainSpec, p *v1alpha1.IPAddressPool) bool {
	t.Helper()
	selected := len(d.IPAddressPools)+len(d.IPAddressPoolSelectors) == 0 || slices.Contains(d.IPAddressPools, p.Name)
	for _, s := range d.IPAddressPoolSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		if err != nil {
			t.Fatal(err)
		}
		selected = selected || selector.Matches(labels.Set(p.Labels))
	}
	return selected
}
