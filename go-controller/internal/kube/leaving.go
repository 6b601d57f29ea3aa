// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// addLeaving adds the addresses of Services that are no longer ours but still have our status, and returns the UIDs of
// these Services. The API server empties the ingress of a Service that is not of type LoadBalancer, and the controller
// of another class may replace it. The condition has the addresses still: if the Service is ours again before the
// condition is removed, it has them, too.
func (f *Facts) addLeaving(w *world.Snapshot) map[world.Key]types.UID {
	left := make(map[world.Key]types.UID, len(f.releasing))
	w.Leaving, w.LeavingShared = map[netip.Addr]world.Key{}, map[world.Key][]netip.Addr{}
	if len(f.releasing) == 0 {
		return left
	}
	served := map[netip.Addr]bool{}
	for _, s := range w.Services {
		for _, a := range s.Shown() {
			served[a] = true
		}
		for _, a := range s.HeldExternalIPs {
			served[a] = true
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(f.releasing), world.Key.Compare) {
		s := f.releasing[key]
		left[key] = s.UID
		for _, a := range slices.Concat(convert.Given(s), convert.HeldExternalIPs(s)) {
			if _, leaves := w.Leaving[a]; served[a] || leaves {
				w.LeavingShared[key] = append(w.LeavingShared[key], a)
			} else {
				w.Leaving[a] = key
			}
		}
	}
	return left
}
