// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// report is what the guard of a node says of it.
type report struct {
	faults map[string]string
	// expiry forgets the report. It counts from when we saw the guard's sign of life, as
	// leader election does: clocks of two machines may differ.
	expiry *time.Timer
}

// setReport wakes nobody for a sign of life.
func (f *Facts) setReport(old, now *coordinationv1.Lease) {
	name := cmp.Or(now, old).Name
	var faults map[string]string
	if now != nil {
		faults = convert.Faults(now)
	}
	f.mu.Lock()
	was := f.reports[name]
	if was != nil {
		was.expiry.Stop()
		delete(f.reports, name)
	}
	if faults != nil {
		is := &report{faults: faults}
		is.expiry = time.AfterFunc(convert.FaultTime(now), func() { f.expire(name, is) })
		f.reports[name] = is
	}
	relevant := (was == nil) != (faults == nil) || was != nil && !maps.Equal(was.faults, faults)
	f.changes.others = f.changes.others || relevant
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// expire forgets a report that was not renewed: a guard that is silent knows nothing, and
// what it last said must not keep a gateway out for ever.
func (f *Facts) expire(name string, r *report) {
	f.mu.Lock()
	relevant := f.reports[name] == r
	if relevant {
		delete(f.reports, name)
		f.changes.others = true
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

func (f *Facts) withFaults(n *world.Node) *world.Node {
	if r := f.reports[n.Name]; r != nil {
		return convert.WithFaults(n, r.faults)
	}
	return n
}
