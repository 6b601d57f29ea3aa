// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// This file is the part of Facts about the objects that administrators write: Nodes, pools, namespaces, domains.

// setNode stores a Node. Heartbeats of the kubelet do not wake the controller.
func (f *Facts) setNode(old, now *corev1.Node) {
	f.mu.Lock()
	was := f.nodes[cmp.Or(now, old).Name]
	relevant := true
	if now == nil {
		delete(f.nodes, old.Name)
		if r := f.reports[old.Name]; r != nil && r.expiry == nil {
			delete(f.reports, old.Name) // nor does another node of that name have it
		}
	} else {
		is := &node{object: now, world: convert.Node(now, f.convert)}
		if was != nil && equalNodes(was.world, is.world) && maps.Equal(was.object.Labels, now.Labels) {
			relevant = false
			is.world = was.world
		}
		f.nodes[now.Name] = is
		if t := f.bgp.recovered[now.Name]; t != nil && !is.world.Unreachable && was != nil && was.world.Unreachable {
			t.Stop()
			delete(f.bgp.recovered, now.Name)
		}
	}
	if relevant {
		f.invalidate()
		clear(f.frr.read)
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

func equalNodes(a, b *world.Node) bool {
	return a.Name == b.Name && a.Created.Equal(b.Created) && a.Chassis == b.Chassis && a.Zone == b.Zone &&
		a.Draining == b.Draining && a.Deleting == b.Deleting &&
		a.GatewayBridge == b.GatewayBridge && a.GatewayMAC == b.GatewayMAC && a.SharedGateway == b.SharedGateway &&
		slices.Equal(a.Addrs, b.Addrs) &&
		slices.Equal(a.Links, b.Links) &&
		slices.Equal(a.NextHops, b.NextHops) && slices.Equal(a.Hosts, b.Hosts) && slices.Equal(a.PodSubnets, b.PodSubnets) &&
		slices.Equal(a.Transit, b.Transit) &&
		slices.Equal(a.External, b.External) &&
		a.NetworkUnavailable == b.NetworkUnavailable && a.Unreachable == b.Unreachable && a.Kernel.Equal(b.Kernel)
}

func (f *Facts) setPool(old, now *v1alpha1.IPAddressPool) {
	f.mu.Lock()
	if now == nil {
		delete(f.pools, old.Name)
	} else {
		f.pools[now.Name] = &pool{
			object: now, world: convert.Pool(now, f.namespaces), selects: convert.NamespaceSelector(now),
		}
	}
	relevant := old == nil || now == nil || old.Generation != now.Generation ||
		old.UID != now.UID || !maps.Equal(old.Labels, now.Labels)
	if relevant {
		f.invalidate()
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// setNamespace stores the labels of a namespace. It wakes the controller if the set of namespaces that a pool serves
// has changed, or that of namespaces with a primary network of their own. Pools are not converted here: a cluster may
// have thousands of namespaces, all of which are new at the start.
func (f *Facts) setNamespace(old, now *corev1.Namespace) {
	if old != nil && now != nil && old.UID == now.UID && maps.Equal(old.Labels, now.Labels) {
		return
	}
	f.mu.Lock()
	name := cmp.Or(now, old).Name
	was, existed := f.namespaces[name]
	if now == nil {
		delete(f.namespaces, name)
	} else {
		f.namespaces[name] = now.Labels
	}
	relevant := f.setPrimaryNetwork(old, now)
	for _, p := range f.pools {
		selected := existed && p.selects(was)
		if selects := now != nil && p.selects(now.Labels); selects == selected ||
			slices.Contains(p.object.Spec.ServiceAllocation.Namespaces, name) {
			continue
		}
		p.stale, relevant = true, true
	}
	f.changes.others = f.changes.others || relevant
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// setPrimaryNetwork records whether a namespace has a primary network of its own. It returns whether that has changed.
// A label that comes or goes later counts for nothing: OVN-Kubernetes does not admit it, but its nodes may write the
// labels of all namespaces, by namespaces/status.
func (f *Facts) setPrimaryNetwork(old, now *corev1.Namespace) bool {
	if old != nil && now != nil && old.UID == now.UID {
		return false
	}
	name, is := cmp.Or(now, old).Name, false
	if now != nil {
		_, is = now.Labels[convert.LabelPrimaryNetwork]
	}
	if is == f.primaryNetworks[name] {
		return false
	}
	if is {
		f.primaryNetworks[name] = true
	} else {
		delete(f.primaryNetworks, name)
	}
	return true
}

func (f *Facts) setDomain(old, now *v1alpha1.L2Domain) {
	f.mu.Lock()
	if now == nil {
		delete(f.domains, old.Name)
	} else {
		f.domains[now.Name] = now
	}
	relevant := old == nil || now == nil || old.Generation != now.Generation || old.UID != now.UID ||
		old.Status.Mode != now.Status.Mode || !sameMove(old, now) ||
		!maps.EqualFunc(convert.Anchors(old), convert.Anchors(now), slices.Equal) ||
		!maps.Equal(convert.Ordinals(old), convert.Ordinals(now)) ||
		!maps.EqualFunc(convert.Gateways(old), convert.Gateways(now), slices.Equal)
	if relevant {
		f.invalidate()
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// sameMove reports whether two versions of a domain have the same request to move shards, with the same progress.
func sameMove(old, now *v1alpha1.L2Domain) bool {
	was, wasResult := convert.Move(old)
	is, isResult := convert.Move(now)
	return equality.Semantic.DeepEqual(was, is) && wasResult == isResult
}
