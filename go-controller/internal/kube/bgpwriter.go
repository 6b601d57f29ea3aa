// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

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
func (w *BGPWriter) Set(want status.BGP) {
	w.peers.Set(want.PeerStatuses())
	w.advertisements.Set(want.AdvertisementStatuses())
	w.profiles.Set(want.ProfileStatuses())
	w.communities.Set(want.CommunityStatuses())
	w.nodes.Set(want.NodeStatuses())
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
