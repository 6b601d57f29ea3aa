// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"
)

// fairQueue is a queue in which namespaces take turns, so that what one of them has waiting does not delay the others.
// Cluster-scoped objects count as a namespace. The zero value is empty.
type fairQueue[T any] struct {
	// waiting is by namespace, oldest first. order are the namespaces that have any, in the order of their turns.
	waiting map[string][]T
	order   []string
	length  int
}

func (q *fairQueue[T]) add(namespace string, x T) {
	if len(q.waiting[namespace]) == 0 {
		if q.waiting == nil {
			q.waiting = map[string][]T{}
		}
		q.order = append(q.order, namespace)
	}
	q.waiting[namespace] = append(q.waiting[namespace], x)
	q.length++
}

// replace replaces what is waiting, by namespace. The namespaces that were waiting keep the order of their turns, and
// the others follow.
func (q *fairQueue[T]) replace(waiting map[string][]T) {
	order := q.order
	*q = fairQueue[T]{}
	for _, namespace := range slices.Concat(order, slices.Sorted(maps.Keys(waiting))) {
		for _, x := range waiting[namespace] {
			q.add(namespace, x)
		}
		delete(waiting, namespace)
	}
}

// next removes the oldest one of the namespace whose turn it is. There must be one.
func (q *fairQueue[T]) next() T {
	namespace := q.order[0]
	q.order = q.order[1:]
	list := q.waiting[namespace]
	x := list[0]
	if list = list[1:]; len(list) > 0 {
		q.waiting[namespace] = list
		q.order = append(q.order, namespace)
	} else {
		delete(q.waiting, namespace)
	}
	q.length--
	return x
}

// drop removes the newest one of the namespace that has most; if several do, of the one whose turn comes last. There
// must be one.
func (q *fairQueue[T]) drop() (namespace string, x T) {
	at := 0
	for i, n := range q.order {
		if len(q.waiting[n]) >= len(q.waiting[q.order[at]]) {
			at = i
		}
	}
	namespace = q.order[at]
	list := q.waiting[namespace]
	x = list[len(list)-1]
	if list = list[:len(list)-1]; len(list) > 0 {
		q.waiting[namespace] = list
	} else {
		delete(q.waiting, namespace)
		q.order = slices.Delete(q.order, at, at+1)
	}
	q.length--
	return namespace, x
}
