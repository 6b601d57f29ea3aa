// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// changes are the changes since the last call of Facts.Changes or Facts.Snapshot.
type changes struct {
	services map[world.Key]world.Change
	// others reports whether anything other than Services changed.
	others bool
}

func (c *changes) add(key world.Key, was, is *world.Service, specChanged bool) {
	if first, ok := c.services[key]; ok {
		was, specChanged = first.Was, specChanged || first.SpecChanged
		// A Service that was deleted and recreated.
		specChanged = specChanged || (first.Is == nil) && first.Was != nil
	}
	if c.services == nil {
		c.services = map[world.Key]world.Change{}
	}
	c.services[key] = world.Change{Was: was, Is: is, SpecChanged: specChanged}
}

// Changes returns the changes of Services since the last call of Changes or Snapshot, and reports whether anything else
// changed.
func (f *Facts) Changes() (services map[world.Key]world.Change, others bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readEndpoints()
	c := f.changes
	f.changes = changes{}
	return c.services, c.others
}

// PutBack returns changes that were taken and are to be applied later, so that the next call of Changes returns them
// with what has changed since. A snapshot contains them.
func (f *Facts) PutBack(later map[world.Key]world.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := f.changes.services
	f.changes.services = maps.Clone(later) // the caller reads its own
	for key, c := range since {
		f.changes.add(key, c.Was, c.Is, c.SpecChanged)
	}
}
