// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// lanes is the order of a work queue: writes that change addresses overtake those that
// change conditions only. The zero value works.
type lanes struct {
	mu     sync.Mutex
	urgent map[world.Key]struct{}

	// Used by the work queue, under its lock.
	fast, slow []world.Key
	waiting    map[world.Key]bool // true in the fast lane; a key may have a stale place in the other
}

var _ workqueue.Queue[world.Key] = (*lanes)(nil)

// rank says which lane the key takes when it is added next.
func (l *lanes) rank(key world.Key, urgent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.urgent == nil {
		l.urgent = map[world.Key]struct{}{}
	}
	if urgent {
		l.urgent[key] = struct{}{}
	} else {
		delete(l.urgent, key)
	}
}

func (l *lanes) isUrgent(key world.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, urgent := l.urgent[key]
	return urgent
}

// Touch moves a waiting key to the fast lane if it became urgent.
func (l *lanes) Touch(key world.Key) {
	if fast, waits := l.waiting[key]; waits && !fast && l.isUrgent(key) {
		l.Push(key)
	}
}

// Push adds a key.
func (l *lanes) Push(key world.Key) {
	if l.waiting == nil {
		l.waiting = map[world.Key]bool{}
	}
	urgent := l.isUrgent(key)
	l.waiting[key] = urgent
	if urgent {
		l.fast = append(l.fast, key)
	} else {
		l.slow = append(l.slow, key)
	}
}

// Len is the number of keys that wait.
func (l *lanes) Len() int { return len(l.waiting) }

// Pop takes the key whose turn it is.
func (l *lanes) Pop() world.Key {
	for _, lane := range []*[]world.Key{&l.fast, &l.slow} {
		for len(*lane) > 0 {
			key := (*lane)[0]
			*lane = (*lane)[1:]
			if fast, waits := l.waiting[key]; waits && fast == (lane == &l.fast) {
				delete(l.waiting, key)
				return key
			}
		}
	}
	return world.Key{}
}
