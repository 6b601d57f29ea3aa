// SPDX-License-Identifier: Apache-2.0

// Package recording implements a Dataplane that records its calls and fails on request. It is intended for tests of
// code that drives a dataplane.
package recording

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Dataplane records the plans that it receives. The zero value is ready to use and does not fail. It may be inspected
// while it is in use.
type Dataplane struct {
	mu         sync.Mutex
	topology   *plan.Topology
	services   map[world.Key]*plan.Service
	broken     map[world.Key]bool
	postponed  map[world.Key]time.Time
	topologyUp func() error
	pruneError error
	onApply    func([]dataplane.Change)
	calls      Calls
}

// Calls counts the calls.
type Calls struct {
	Configure, Apply, Prune int
	// Changes is the number of changes in all Apply calls.
	Changes int
}

var _ dataplane.Dataplane = (*Dataplane)(nil)

// Configure records the topology, or returns the error of the function set with FailConfigure.
func (d *Dataplane) Configure(_ context.Context, topology *plan.Topology) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls.Configure++
	if d.topologyUp != nil {
		if err := d.topologyUp(); err != nil {
			return err
		}
	}
	d.topology = topology
	return nil
}

// Apply records the plans of all keys except those passed to Break.
func (d *Dataplane) Apply(_ context.Context, changes []dataplane.Change) map[world.Key]error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls.Apply++
	d.calls.Changes += len(changes)
	if d.onApply != nil {
		d.onApply(changes)
	}
	failed := map[world.Key]error{}
	for _, c := range changes {
		switch {
		case c.Want != nil && time.Now().Before(d.postponed[c.Key]):
			failed[c.Key] = dataplane.Postponed{Until: d.postponed[c.Key]}
		case d.broken[c.Key]:
			failed[c.Key] = errors.New("broken by the test")
		case c.Want == nil:
			delete(d.services, c.Key)
		default:
			d.put(c.Key, c.Want)
		}
	}
	return failed
}

// Prune deletes the Services for which keep returns false, or returns the error set with FailPrune.
func (d *Dataplane) Prune(_ context.Context, keep func(world.Key) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls.Prune++
	if d.pruneError != nil {
		return d.pruneError
	}
	maps.DeleteFunc(d.services, func(k world.Key, _ *plan.Service) bool { return !keep(k) })
	return nil
}

// Pending returns the zero time: everything takes effect at once.
func (d *Dataplane) Pending(world.Key) time.Time { return time.Time{} }

// Put adds a Service that was not applied, as if left by an earlier run.
func (d *Dataplane) Put(key world.Key, s *plan.Service) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(key, s)
}

func (d *Dataplane) put(key world.Key, s *plan.Service) {
	if d.services == nil {
		d.services = map[world.Key]*plan.Service{}
	}
	d.services[key] = s
}

// Postpone makes every Apply of the key except a removal return dataplane.Postponed until then.
func (d *Dataplane) Postpone(key world.Key, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.postponed = map[world.Key]time.Time{key: until}
}

// Break makes every Apply of the keys fail, and repairs all others.
func (d *Dataplane) Break(keys ...world.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = map[world.Key]bool{}
	for _, k := range keys {
		d.broken[k] = true
	}
}

// OnApply sets a function that is called with the changes of each Apply.
func (d *Dataplane) OnApply(do func([]dataplane.Change)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onApply = do
}

// FailConfigure sets a function that is called before each Configure and returns its error. Nil repairs it.
func (d *Dataplane) FailConfigure(fail func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.topologyUp = fail
}

// FailPrune sets the error of each Prune. Nil repairs it.
func (d *Dataplane) FailPrune(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pruneError = err
}

// Services returns a copy of what the dataplane has.
func (d *Dataplane) Services() map[world.Key]*plan.Service {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.services)
}

// Topology returns the newest topology.
func (d *Dataplane) Topology() *plan.Topology {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.topology
}

// Calls returns the counts so far.
func (d *Dataplane) Calls() Calls {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}
