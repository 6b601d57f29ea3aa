// SPDX-License-Identifier: Apache-2.0

package kube

import (
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
	var got []string
	for queue.Len() > 0 {
		j, _ := queue.Get()
		got = append(got, j.key.Name)
		priorities.done(j)
		queue.Done(j)
	}
	if want := []string{"c", "b", "a", "b", "d"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}
