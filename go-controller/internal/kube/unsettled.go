// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// sentAddrs are the addresses in statuses of a Service that were sent to the API server without an answer, and the UID
// of the Service. Each of them may still be applied until a later one is, or fails because of its resourceVersion. The
// statuses themselves are not kept: a tenant can write Services of a megabyte whose statuses the API server never
// stores, because the object would be too large with them.
type sentAddrs struct {
	uid   types.UID
	addrs []netip.Addr
}

// maxEarlier is how many addresses are kept of the writes before the last one.
const maxEarlier = 1024

// with adds the addresses of another status of the Service.
func (s sentAddrs) with(next *corev1.Service) sentAddrs {
	out := sentAddrs{next.UID, slices.Concat(convert.Assigned(next), convert.HeldExternalIPs(next))}
	known := world.AddrSet(out.addrs)
	earlier := slices.DeleteFunc(slices.Clone(s.addrs), known)
	out.addrs = append(out.addrs, earlier[:min(len(earlier), maxEarlier)]...)
	return out
}

// isObsolete reports whether the Service is gone, so that its writes will not be applied any more. have is the present
// object of that name, or nil.
func (s sentAddrs) isObsolete(have *corev1.Service) bool { return have == nil || have.UID != s.uid }

// forgetSent forgets a write without an answer if it is obsolete.
func (w *ServiceWriter) forgetSent(key world.Key, have *corev1.Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent[key].isObsolete(have) {
		delete(w.sent, key)
	}
}

// Unsettled returns the addresses of statuses that earlier decisions want and that may not be written yet, or that a
// write without an answer contains: they may appear in the API although the next decision does not want them.
func (w *ServiceWriter) Unsettled() map[world.Key][]netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[world.Key][]netip.Addr{}
	for key := range w.open {
		w.addUnsettled(out, key)
	}
	for key := range w.sent {
		if !w.isOpen(key) {
			w.addUnsettled(out, key)
		}
	}
	w.lastUnsettled = maps.Clone(out)
	return out
}

// addUnsettled adds the addresses of one Service. w.mu must be held.
func (w *ServiceWriter) addUnsettled(out map[world.Key][]netip.Addr, key world.Key) {
	if want := w.want[key]; w.isOpen(key) && want != nil && !want.LeaveIngress && !want.Release {
		out[key] = slices.Concat(want.Addrs, want.External)
	}
	if s, sent := w.sent[key]; sent {
		out[key] = slices.Concat(out[key], s.addrs)
	}
}

// wakeForFreed wakes the controller if an address that the last decision took for unsettled will not appear any more:
// no event reports that, and Services may be waiting for it. Without keys it compares all Services.
func (w *ServiceWriter) wakeForFreed(keys ...world.Key) {
	w.mu.Lock()
	if len(keys) == 0 {
		keys = slices.Collect(maps.Keys(w.lastUnsettled))
	}
	freed := false
	for _, key := range keys {
		was := w.lastUnsettled[key]
		if len(was) == 0 {
			continue
		}
		now := map[world.Key][]netip.Addr{}
		w.addUnsettled(now, key)
		has := now[key]
		if have := w.newest(key); have != nil {
			has = slices.Concat(has, convert.Assigned(have), convert.HeldExternalIPs(have))
		}
		may := world.AddrSet(has)
		if slices.ContainsFunc(was, func(a netip.Addr) bool { return !may(a) }) {
			freed = true
			delete(w.lastUnsettled, key)
		} else if _, sent := w.sent[key]; !w.isOpen(key) && !sent {
			delete(w.lastUnsettled, key)
		}
	}
	w.mu.Unlock()
	if freed {
		w.wake()
	}
}
