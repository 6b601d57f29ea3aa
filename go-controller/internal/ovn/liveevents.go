// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"sync"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/model"
)

// liveEvents forwards the events of one connection until it ends. A closed client may still have queued events, and
// delivers them while the next connection is already being read.
type liveEvents struct {
	to cache.EventHandler

	mu    sync.RWMutex
	ended bool
}

var _ cache.EventHandler = (*liveEvents)(nil)

// end waits for the event that is being handled. No event is forwarded after it returns.
func (e *liveEvents) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
}

func (e *liveEvents) deliver(deliver func()) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.ended {
		deliver()
	}
}

// OnAdd implements cache.EventHandler.
func (e *liveEvents) OnAdd(table string, m model.Model) { e.deliver(func() { e.to.OnAdd(table, m) }) }

// OnUpdate implements cache.EventHandler.
func (e *liveEvents) OnUpdate(table string, before, after model.Model) {
	e.deliver(func() { e.to.OnUpdate(table, before, after) })
}

// OnDelete implements cache.EventHandler.
func (e *liveEvents) OnDelete(table string, m model.Model) {
	e.deliver(func() { e.to.OnDelete(table, m) })
}
