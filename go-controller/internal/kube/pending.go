// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// pendingSince returns the time since which a Service has been waiting for an address. A Service that has one by now
// keeps that time: the informer may show its status before the API server has responded to the write.
func pendingSince(was, is *world.Service, before time.Time) time.Time {
	same := was != nil && is != nil && was.UID == is.UID
	switch {
	case is == nil, len(is.Assigned) > 0 && !same:
		return time.Time{}
	case len(is.Assigned) > 0, same && len(was.Assigned) == 0:
		return before
	}
	return time.Now()
}

// PendingSince returns when a Service was first seen without an address, even if it has one by now. It returns the zero
// time if the Service was never seen without one.
func (f *Facts) PendingSince(key world.Key) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.services[key]; s != nil {
		return s.waits
	}
	return time.Time{}
}
