// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestAddressWritesPrecedeConditionWrites(t *testing.T) {
	priorities := &priorityQueue{}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[job]{Queue: priorities})
	add := func(name string, address bool) { queue.Add(job{world.Key{Name: name}, address}) }
	add("a", false)
	add("b", false)
	add("c", true)
	add("b", true) // already queued, and became urgent
	add("d", false)
	add("c", true) // duplicates are merged
	if n := queue.Len(); n != 5 {
		t.Errorf("%d wait, want 5", n)
	}
	got := taken(queue, priorities)
	if want := []string{"/c", "/b", "/a", "/b", "/d"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// One edit of a tenant may move thousands of Services to another address. The first address of another tenant's Service
// is written among the next ones.
func TestNamespacesTakeTurnsInWrites(t *testing.T) {
	for _, address := range []bool{true, false} {
		priorities := &priorityQueue{}
		queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[job]{Queue: priorities})
		for i := range 4000 {
			queue.Add(job{world.Key{Namespace: "flood", Name: fmt.Sprint(i)}, address})
		}
		queue.Add(job{world.Key{Namespace: "shop", Name: "web"}, address})
		queue.Add(job{world.Key{Namespace: "shop", Name: "api"}, address})
		got := taken(queue, priorities)
		if want := []string{"flood/0", "shop/web", "flood/1", "shop/api", "flood/2"}; !slices.Equal(got[:5], want) {
			t.Errorf("order %v, want %v", got[:5], want)
		}
		if len(got) != 4002 || got[4001] != "flood/3999" {
			t.Errorf("%d were taken", len(got))
		}
	}
}

// Addresses that wait all the time keep no condition from being written, and take no more than two writers for that.
func TestConditionsAreWrittenWhileAddressesWait(t *testing.T) {
	priorities := &priorityQueue{}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[job]{Queue: priorities})
	for i := range 40 {
		queue.Add(job{world.Key{Namespace: "flood", Name: fmt.Sprint(i)}, true})
		queue.Add(job{world.Key{Namespace: "shop", Name: fmt.Sprint(i)}, false})
	}
	var conditions []int
	for i := range 16 {
		if j, _ := queue.Get(); !j.address {
			conditions = append(conditions, i)
		}
	}
	if !slices.Equal(conditions, []int{3, 7}) {
		t.Errorf("of sixteen writers, %v write conditions", conditions)
	}
}

// A webhook may let each write of one namespace take sendTimeout. While writes of others wait, addresses or conditions,
// it has half of the writers at most; then it has all of them.
func TestSlowWritesOfANamespaceLeaveWritersToOthers(t *testing.T) {
	priorities := &priorityQueue{}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[job]{Queue: priorities})
	for i := range 100 {
		for _, address := range []bool{true, false} {
			queue.Add(job{world.Key{Namespace: "slow", Name: fmt.Sprint(i)}, address})
			queue.Add(job{world.Key{Namespace: "shop", Name: fmt.Sprint(i)}, address})
		}
	}
	var hanging []job
	for written := 0; written < 200; {
		j, _ := queue.Get()
		if j.key.Namespace == "shop" {
			written++
			priorities.done(j)
			queue.Done(j)
		} else if hanging = append(hanging, j); len(hanging) == writers {
			t.Fatalf("all writers hang after %d writes of others", written)
		}
	}
	if n := len(hanging); n != writers/2+slowWriters/2 {
		t.Errorf("one namespace has %d of %d writers while others wait", n, writers)
	}
	for len(hanging) < writers && queue.Len() > 0 {
		j, _ := queue.Get()
		hanging = append(hanging, j)
	}
	if len(hanging) != writers {
		t.Errorf("one namespace has %d of %d writers while no others wait", len(hanging), writers)
	}
	for _, j := range hanging {
		priorities.done(j)
		queue.Done(j)
	}
	if got := taken(queue, priorities); len(got)+len(hanging) != 200 {
		t.Errorf("%d were taken at last, want %d", len(got), 200-len(hanging))
	}
}

// taken empties a queue, and returns the Services in order.
func taken(queue workqueue.TypedInterface[job], priorities *priorityQueue) (names []string) {
	for queue.Len() > 0 {
		j, _ := queue.Get()
		names = append(names, j.key.String())
		priorities.done(j)
		queue.Done(j)
	}
	return names
}
