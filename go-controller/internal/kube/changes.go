// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// changes are what happened since somebody asked.
type changes struct {
	services map[world.Key]world.Change
	// others: something else than Services changed.
	others bool
}

func (c *changes) add(key world.Key, was, is *world.Service, asked bool) {
	if first, ok := c.services[key]; ok {
		was, asked = first.Was, asked || first.SpecChanged
		// One that went and came back, or one in another's place.
		asked = asked || (first.Is == nil) && first.Was != nil
	}
	if c.services == nil {
		c.services = map[world.Key]world.Change{}
	}
	c.services[key] = world.Change{Was: was, Is: is, SpecChanged: asked}
}

// Changes returns what became of Services since the last Changes or Snapshot, and true if
// that is not all that happened.
func (f *Facts) Changes() (services map[world.Key]world.Change, others bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.changes
	f.changes = changes{}
	return c.services, c.others
}
