// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// BGPVerdicts are the desired conditions of the BGP kinds, by name of the object.
type BGPVerdicts struct {
	Peers, Advertisements, Profiles, Communities map[string]Verdicts
	// Silent are the nodes whose BGPNodeStatus has expired.
	Silent map[string]Verdicts
}

// BGPWriter writes the conditions of the BGP kinds.
type BGPWriter struct {
	peers          *ObjectWriter[*v1alpha1.BGPPeer]
	advertisements *ObjectWriter[*v1alpha1.BGPAdvertisement]
	profiles       *ObjectWriter[*v1alpha1.BFDProfile]
	communities    *ObjectWriter[*v1alpha1.Community]
	nodes          *ObjectWriter[*v1alpha1.BGPNodeStatus]
}

// NewBGPWriter returns a writer for the objects in facts.
func NewBGPWriter(ours *Clients, facts *Facts, wrote Wrote, events *Events) *BGPWriter {
	return &BGPWriter{
		peers: NewObjectWriter("BGPPeer", ours.Peers, func(name string) (*v1alpha1.BGPPeer, bool) {
			return newest(facts, facts.bgp.peers, name)
		}, wrote, events.Peer),
		advertisements: NewObjectWriter("BGPAdvertisement", ours.Advertisements,
			func(name string) (*v1alpha1.BGPAdvertisement, bool) {
				return newest(facts, facts.bgp.advertisements, name)
			}, wrote, nil),
		profiles: NewObjectWriter("BFDProfile", ours.Profiles,
			func(name string) (*v1alpha1.BFDProfile, bool) { return newest(facts, facts.bgp.profiles, name) }, wrote, nil),
		communities: NewObjectWriter("Community", ours.Communities,
			func(name string) (*v1alpha1.Community, bool) { return newest(facts, facts.bgp.communities, name) }, wrote, nil),
		nodes: NewObjectWriter("BGPNodeStatus", ours.NodeStatuses, facts.NodeStatus, wrote, nil),
	}
}

// Set replaces all desired conditions.
func (w *BGPWriter) Set(v BGPVerdicts) {
	w.peers.Set(merges(v.Peers, (*v1alpha1.BGPPeer).DeepCopy, func(o *v1alpha1.BGPPeer) *[]metav1.Condition {
		return &o.Status.Conditions
	}, nil))
	w.advertisements.Set(merges(v.Advertisements, (*v1alpha1.BGPAdvertisement).DeepCopy,
		func(o *v1alpha1.BGPAdvertisement) *[]metav1.Condition { return &o.Status.Conditions }, setAdvertisementColumns))
	w.profiles.Set(merges(v.Profiles, (*v1alpha1.BFDProfile).DeepCopy, func(o *v1alpha1.BFDProfile) *[]metav1.Condition {
		return &o.Status.Conditions
	}, nil))
	w.nodes.Set(merges(v.Silent, (*v1alpha1.BGPNodeStatus).DeepCopy, func(o *v1alpha1.BGPNodeStatus) *[]metav1.Condition {
		return &o.Status.Conditions
	}, nil))
	w.communities.Set(merges(v.Communities, (*v1alpha1.Community).DeepCopy,
		func(o *v1alpha1.Community) *[]metav1.Condition { return &o.Status.Conditions }, setCommunityColumns))
}

// Run writes until the context ends.
func (w *BGPWriter) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){w.peers.Run, w.advertisements.Run, w.profiles.Run, w.communities.Run,
		w.nodes.Run} {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
}

// merges returns a Merge for each object of a kind whose status consists of conditions and columns of kubectl get.
// columns sets these, and reports whether that changed anything; it may be nil.
func merges[T object](verdicts map[string]Verdicts, clone func(T) T, conditions func(T) *[]metav1.Condition,
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
