// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// BGP are the desired conditions of the BGP kinds, by name of the object.
type BGP struct {
	Peers, Advertisements, Profiles, Communities map[string]Verdicts
	// Silent are the nodes whose BGPNodeStatus has expired.
	Silent map[string]Verdicts
}

// PeerStatuses returns a Merge for each BGPPeer.
func (b BGP) PeerStatuses() map[string]Merge[*v1alpha1.BGPPeer] {
	return merges(b.Peers, (*v1alpha1.BGPPeer).DeepCopy,
		func(o *v1alpha1.BGPPeer) *[]metav1.Condition { return &o.Status.Conditions }, nil)
}

// AdvertisementStatuses returns a Merge for each BGPAdvertisement.
func (b BGP) AdvertisementStatuses() map[string]Merge[*v1alpha1.BGPAdvertisement] {
	return merges(b.Advertisements, (*v1alpha1.BGPAdvertisement).DeepCopy,
		func(o *v1alpha1.BGPAdvertisement) *[]metav1.Condition { return &o.Status.Conditions }, setAdvertisementColumns)
}

// ProfileStatuses returns a Merge for each BFDProfile.
func (b BGP) ProfileStatuses() map[string]Merge[*v1alpha1.BFDProfile] {
	return merges(b.Profiles, (*v1alpha1.BFDProfile).DeepCopy,
		func(o *v1alpha1.BFDProfile) *[]metav1.Condition { return &o.Status.Conditions }, nil)
}

// CommunityStatuses returns a Merge for each Community.
func (b BGP) CommunityStatuses() map[string]Merge[*v1alpha1.Community] {
	return merges(b.Communities, (*v1alpha1.Community).DeepCopy,
		func(o *v1alpha1.Community) *[]metav1.Condition { return &o.Status.Conditions }, setCommunityColumns)
}

// NodeStatuses returns a Merge for each BGPNodeStatus that has expired.
func (b BGP) NodeStatuses() map[string]Merge[*v1alpha1.BGPNodeStatus] {
	return merges(b.Silent, (*v1alpha1.BGPNodeStatus).DeepCopy,
		func(o *v1alpha1.BGPNodeStatus) *[]metav1.Condition { return &o.Status.Conditions }, nil)
}

// merges returns a Merge for each object of a kind whose status consists of conditions and columns of kubectl get.
// columns sets these, and reports whether that changed anything; it may be nil.
func merges[T metav1.Object](verdicts map[string]Verdicts, clone func(T) T, conditions func(T) *[]metav1.Condition,
	columns func(T) bool) map[string]Merge[T] {
	out := make(map[string]Merge[T], len(verdicts))
	for name, v := range verdicts {
		out[name] = func(have T, now time.Time) (T, bool) {
			next := clone(have)
			changed := v.set(conditions(next), have.GetGeneration(), now)
			return next, columns != nil && columns(next) || changed
		}
	}
	return out
}
