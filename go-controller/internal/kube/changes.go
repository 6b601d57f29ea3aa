// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// changes are the changes since the last call of Facts.Changes or Facts.Snapshot.
type changes struct {
	services map[world.Key]world.Change
	// reports are the nodes whose reports have changed only in what Changes returns of them.
	reports map[string]bool
	// others reports whether anything else changed.
	others bool
}

// Changes are the changes since the last call of Facts.Changes or Facts.Snapshot.
type Changes struct {
	Services map[world.Key]world.Change
	// Applied and Probed are of the newest reports that differ only in which versions of ServicePlans the agent has
	// applied, and in which probe requests the guard has completed, by node.
	Applied map[string]*world.ZoneAgent
	Probed  map[string][]string
	// Others reports whether anything else changed.
	Others bool
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

func (c *changes) addReport(node string) {
	if c.reports == nil {
		c.reports = map[string]bool{}
	}
	c.reports[node] = true
}

// Changes returns the changes since the last call of Changes or Snapshot.
func (f *Facts) Changes() Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readEndpoints()
	c := f.changes
	f.changes = changes{}
	out := Changes{Services: c.services, Others: c.others || f.listed.isDue(time.Now()),
		Applied: map[string]*world.ZoneAgent{}, Probed: map[string][]string{}}
	for name := range c.reports {
		if r := f.reports[name]; r != nil {
			out.Probed[name] = r.Probed
			if r.Zone != nil {
				out.Applied[name] = r.Zone
			}
		}
	}
	return out
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
