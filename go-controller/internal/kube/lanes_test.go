// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestAddressesOvertakeConditions(t *testing.T) {
	lanes := &lanes{}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[world.Key]{Queue: lanes})
	add := func(name string, urgent bool) {
		key := world.Key{Name: name}
		lanes.rank(key, urgent)
		queue.Add(key)
	}
	add("a", false)
	add("b", false)
	add("c", true)
	add("b", true) // waits already, and became urgent
	add("d", false)
	add("c", true) // twice is once
	if n := queue.Len(); n != 4 {
		t.Errorf("%d wait, want 4", n)
	}
	var got []string
	for queue.Len() > 0 {
		key, _ := queue.Get()
		got = append(got, key.Name)
		queue.Done(key)
	}
	if want := []string{"c", "b", "a", "d"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}
