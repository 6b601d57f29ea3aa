// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxOverlaps is the maximum number of overlapping entries in an error, as in the policy.
const maxOverlaps = 3

// overlaps returns the errors for which the admission policy of dist/manifests/admission would refuse a pool: one per
// other pool that has some of its addresses. Like the policy, it accepts an edit that leaves the spec as it is, and
// addresses that one of the two pools excludes.
func (o *Objects) overlaps(content map[string]any) []string {
	var next v1alpha1.IPAddressPool
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &next); err != nil {
		return nil // setting the object fails with the same error
	}
	if old := Named(o.Pools, next.Name); old != nil && equality.Semantic.DeepEqual(old.Spec, next.Spec) {
		return nil
	}
	var errs []string
	for _, other := range o.Pools {
		if other.Name == next.Name {
			continue
		}
		entries := overlappingEntries(&next.Spec, &other.Spec)
		if len(entries) > maxOverlaps {
			entries = append(entries[:maxOverlaps], "...")
		}
		if len(entries) > 0 {
			errs = append(errs, fmt.Sprintf("spec.addresses: %s of IPAddressPool %s", strings.Join(entries, ", "), other.Name))
		}
	}
	slices.Sort(errs)
	return errs
}

// overlappingEntries returns "X overlaps Y" for each entry X of a pool, with the first such entry Y of the other one.
func overlappingEntries(mine, theirs *v1alpha1.IPAddressPoolSpec) []string {
	var entries []string
	for _, x := range mine.Addresses {
		at := slices.IndexFunc(theirs.Addresses, func(y v1alpha1.AddressRange) bool {
			both, overlap := intersection(x, y)
			return overlap && !slices.ContainsFunc(slices.Concat(mine.Exclude, theirs.Exclude),
				func(e v1alpha1.AddressRange) bool {
					out, err := e.Parse()
					return err == nil && out.Contains(both.From()) && out.Contains(both.To())
				})
		})
		if at >= 0 {
			entries = append(entries, fmt.Sprintf("%s overlaps %s", x, theirs.Addresses[at]))
		}
	}
	return entries
}

// intersection returns the common addresses of two entries. It returns false if there are none, or if an entry is
// invalid: schemas refuse those.
func intersection(x, y v1alpha1.AddressRange) (netipx.IPRange, bool) {
	a, errA := x.Parse()
	b, errB := y.Parse()
	if errA != nil || errB != nil || !a.Overlaps(b) {
		return netipx.IPRange{}, false
	}
	from, to := a.From(), a.To()
	if from.Less(b.From()) {
		from = b.From()
	}
	if b.To().Less(to) {
		to = b.To()
	}
	return netipx.IPRangeFrom(from, to), true
}
