// SPDX-License-Identifier: Apache-2.0

package kube

import "slices"

// turns is a queue in which namespaces take turns, so that what one of them has waiting does not delay the others.
// Cluster-scoped objects count as a namespace. The zero value is empty.
type turns[T any] struct {
	// waiting is by namespace, oldest first. order are the namespaces that have any, in the order of their turns.
	waiting map[string][]T
	order   []string
	length  int
}

func (t *turns[T]) add(namespace string, x T) {
	if len(t.waiting[namespace]) == 0 {
		if t.waiting == nil {
			t.waiting = map[string][]T{}
		}
		t.order = append(t.order, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], x)
	t.length++
}

// next removes the oldest one of the namespace whose turn it is. There must be one.
func (t *turns[T]) next() T {
	namespace := t.order[0]
	t.order = t.order[1:]
	list := t.waiting[namespace]
	x := list[0]
	if list = list[1:]; len(list) > 0 {
		t.waiting[namespace] = list
		t.order = append(t.order, namespace)
	} else {
		delete(t.waiting, namespace)
	}
	t.length--
	return x
}

// drop removes the newest one of the namespace that has most; if several do, of the one whose turn comes last. There
// must be one.
func (t *turns[T]) drop() (namespace string, x T) {
	at := 0
	for i, n := range t.order {
		if len(t.waiting[n]) >= len(t.waiting[t.order[at]]) {
			at = i
		}
	}
	namespace = t.order[at]
	list := t.waiting[namespace]
	x = list[len(list)-1]
	if list = list[:len(list)-1]; len(list) > 0 {
		t.waiting[namespace] = list
	} else {
		delete(t.waiting, namespace)
		t.order = slices.Delete(t.order, at, at+1)
	}
	t.length--
	return namespace, x
}
