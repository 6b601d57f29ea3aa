// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// All nodes watch L2Domains, whose statuses have counts of what tenants create and texts of what nodes report. Another
// order of gateways is written at once all the same: zones apply it.
func TestDomainsAreWrittenSeldomForCountsAndTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &objectStore[*v1alpha1.L2Domain]{
			object: &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}}
		w := NewDomainWriter(s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		set := func(addresses int32, fault string, gateways ...string) {
			w.Set(map[string]status.Merge[*v1alpha1.L2Domain]{"lan": status.Domain(v1alpha1.L2DomainStatus{
				Shards:        []v1alpha1.ShardStatus{{Gateways: gateways, Addresses: addresses}},
				ExcludedNodes: []v1alpha1.ExcludedNode{{Name: "n9", Reason: v1alpha1.ExcludedFaulty, Message: fault}},
			}, nil, true)})
		}
		const minutes = 10
		for i := range int32(minutes * 60) {
			set(i, fmt.Sprint("fault ", i), "n1", "n2")
			<-time.After(time.Second)
		}
		writes, most := s.count(), statusBurst+int(minutes*time.Minute/statusPause)+1
		if writes > most {
			t.Errorf("%d writes in %d minutes, want at most %d", writes, minutes, most)
		}
		set(0, "", "n2", "n1")
		<-time.After(2 * objectPause)
		if d, _ := s.read("lan"); d.Status.Shards[0].Gateways[0] != "n2" {
			t.Errorf("another order of gateways waits: %v", d.Status.Shards)
		}
		cancel()
		<-done
	})
}

// A node that is no gateway of a shard is excluded for another reason, or no longer, as often as it likes. Zones do not
// use that. That a gateway drains is written at once.
func TestDomainsAreWrittenSeldomForNodesThatAreNoGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &objectStore[*v1alpha1.L2Domain]{
			object: &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}}
		w := NewDomainWriter(s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		set := func(excluded ...v1alpha1.ExcludedNode) {
			w.Set(map[string]status.Merge[*v1alpha1.L2Domain]{"lan": status.Domain(v1alpha1.L2DomainStatus{
				Shards:        []v1alpha1.ShardStatus{{Active: "n1", Gateways: []string{"n1", "n2"}}},
				EligibleNodes: int32(3 - len(excluded)),
				ExcludedNodes: excluded,
			}, nil, true)})
		}
		const minutes = 10
		for i := range minutes * 60 {
			switch i % 3 {
			case 0:
				set(v1alpha1.ExcludedNode{Name: "n9", Reason: v1alpha1.ExcludedNotAttached})
			case 1:
				set(v1alpha1.ExcludedNode{Name: "n9", Reason: v1alpha1.ExcludedDraining})
			default:
				set()
			}
			<-time.After(time.Second)
		}
		writes, most := s.count(), statusBurst+int(minutes*time.Minute/statusPause)+1
		if writes > most {
			t.Errorf("%d writes in %d minutes, want at most %d", writes, minutes, most)
		}
		set(v1alpha1.ExcludedNode{Name: "n2", Reason: v1alpha1.ExcludedDraining})
		<-time.After(2 * objectPause)
		if d, _ := s.read("lan"); len(d.Status.ExcludedNodes) != 1 || d.Status.ExcludedNodes[0].Name != "n2" {
			t.Errorf("a gateway that drains waits: %v", d.Status.ExcludedNodes)
		}
		cancel()
		<-done
	})
}

// What was refused delays no other order of gateways, which may not be refused.
func TestAnotherOrderOfGatewaysDoesNotWaitForWhatWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusing[*v1alpha1.L2Domain]{refuse: true, objectStore: objectStore[*v1alpha1.L2Domain]{
			object: &v1alpha1.L2Domain{ObjectMeta: metav1.ObjectMeta{Name: "lan"}}}}
		w := NewDomainWriter(s, s.read, func(string, error) {}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		set := func(gateways ...string) {
			w.Set(map[string]status.Merge[*v1alpha1.L2Domain]{"lan": status.Domain(v1alpha1.L2DomainStatus{
				Shards: []v1alpha1.ShardStatus{{Gateways: gateways}}}, nil, true)})
		}
		set("n1", "n2")
		<-time.After(5 * time.Minute)
		synctest.Wait()
		s.set(false, false)
		set("n2", "n1")
		<-time.After(2 * objectPause)
		synctest.Wait()
		if s.count() != 1 {
			t.Errorf("%d writes, want 1", s.count())
		}
		cancel()
		<-done
	})
}
