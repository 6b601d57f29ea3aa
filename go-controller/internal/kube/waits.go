// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// waitsSince says since when a Service waits for an address. One that has it by now keeps
// that time: its own status may be seen here before the answer to the write of it.
func waitsSince(was, is *world.Service, before time.Time) time.Time {
	same := was != nil && is != nil && was.UID == is.UID
	switch {
	case is == nil, len(is.Assigned) > 0 && !same:
		return time.Time{}
	case len(is.Assigned) > 0, same && len(was.Assigned) == 0:
		return before
	}
	return time.Now()
}

// PendingSince returns when a Service was first seen without the address that it waits for,
// or has been given since; the zero time if it came with one.
func (f *Facts) PendingSince(key world.Key) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.services[key]; s != nil {
		return s.waits
	}
	return time.Time{}
}
