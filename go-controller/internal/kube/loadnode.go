// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// LoadNode reads what shows which shards, sessions and routes a node has, for commands that do so again and again: of
// Nodes, Leases and reports only those of the node, and nothing of Services. Resources that the user may not list are
// in Objects.Unread.
func LoadNode(ctx context.Context, core kubernetes.Interface, ours *Clients, node string) (*objects.Objects, error) {
	l := &loader{core: core, ours: ours, out: &objects.Objects{}}
	var g errgroup.Group // as in LoadObjects
	g.Go(func() error { return list(ctx, l, "nodes", named(core.CoreV1().Nodes().List, node), &l.out.Nodes) })
	g.Go(func() error {
		return list(ctx, l, "leases", named(core.CoordinationV1().Leases(v1alpha1.GuardsNamespace).List, node), &l.out.Leases)
	})
	g.Go(func() error {
		return list(ctx, l, "bgpnodestatuses", named(ours.NodeStatuses.List, node), &l.out.NodeStatuses)
	})
	g.Go(func() error { return list(ctx, l, "ipaddresspools", ours.Pools.List, &l.out.Pools) })
	g.Go(func() error { return list(ctx, l, "l2domains", ours.Domains.List, &l.out.Domains) })
	g.Go(func() error { return list(ctx, l, "bgppeers", ours.Peers.List, &l.out.Peers) })
	g.Go(func() error { return list(ctx, l, "bfdprofiles", ours.Profiles.List, &l.out.Profiles) })
	if ours.FRR != nil {
		g.Go(func() error {
			return listIfServed(ctx, l, frr.Configurations, ours.FRR.Configurations.List, &l.out.FRRConfigurations)
		})
		g.Go(func() error {
			return listIfServed(ctx, l, frr.NodeStates, named(ours.FRR.NodeStates.List, node), &l.out.FRRNodes)
		})
		g.Go(func() error {
			return listIfServed(ctx, l, frr.SessionStates, ours.FRR.SessionStates.List, &l.out.FRRSessions)
		})
	}
	for _, namespace := range objects.ControllerNamespaces() {
		g.Go(func() error { return l.loadLeader(ctx, namespace) })
	}
	if err := cmp.Or(g.Wait(), l.missingError()); err != nil {
		return nil, err
	}
	if l.out.UsesFRR() {
		// Those of all nodes: a node without one is told from Pods that must not be read.
		if err := l.loadPodsOfFRR(ctx); err != nil {
			return nil, err
		}
	}
	l.sortUnread()
	return l.out, nil
}

// named returns a function that lists only the object with a name.
func named[L runtime.Object](from lists[L], name string) lists[L] {
	return func(ctx context.Context, o metav1.ListOptions) (L, error) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		return from(ctx, o)
	}
}
