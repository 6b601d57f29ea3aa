// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// loader reads the objects of a cluster.
type loader struct {
	core kubernetes.Interface
	ours *Clients
	mu   sync.Mutex
	out  *objects.Objects
	// missing are the resources that the API server does not serve.
	missing []string
}

// resources returns those of ours.
func resources() []string {
	return []string{"ipaddresspools", "l2domains", "bgppeers", "bgpadvertisements", "bfdprofiles", "communities",
		"bgpnodestatuses"}
}

// missingError names the resources that the API server does not serve, and what installs them.
func (l *loader) missingError() error {
	if len(l.missing) == 0 {
		return nil
	}
	group := v1alpha1.GroupVersion().Group
	if len(l.missing) == len(resources()) {
		return fmt.Errorf("the API server serves no resource of %s: ovnkube-slb is not installed in this cluster "+
			"(docs/install.md)", group)
	}
	slices.Sort(l.missing)
	return fmt.Errorf("the API server does not serve %s of %s: its CustomResourceDefinitions are missing, or those of "+
		"another version; what installed ovnkube-slb has them, and so has dist/manifests/crds (docs/install.md)",
		strings.Join(l.missing, ", "), group)
}

// LoadObjects reads the objects of the whole cluster once, for commands. With a Service, it reads only this Service and
// its EndpointSlices of these kinds; with a key without a name, only those of the namespace. Resources that the user
// may not list are in Objects.Unread.
func LoadObjects(ctx context.Context, core kubernetes.Interface, ours *Clients, service *world.Key) (*objects.Objects,
	error) {
	l := &loader{core: core, ours: ours, out: &objects.Objects{}}
	var g errgroup.Group // Not one that cancels the others after an error: client-go logs canceled requests as errors.
	namespace := metav1.NamespaceAll
	if service != nil {
		namespace = service.Namespace
	}
	if service != nil && service.Name != "" {
		g.Go(func() error { return l.loadService(ctx, *service) })
	} else {
		g.Go(func() error { return list(ctx, l, "services", core.CoreV1().Services(namespace).List, &l.out.Services) })
		g.Go(func() error {
			return list(ctx, l, "endpointslices", core.DiscoveryV1().EndpointSlices(namespace).List, &l.out.Slices)
		})
	}
	g.Go(func() error { return list(ctx, l, "nodes", core.CoreV1().Nodes().List, &l.out.Nodes) })
	g.Go(func() error { return list(ctx, l, "namespaces", core.CoreV1().Namespaces().List, &l.out.Namespaces) })
	g.Go(func() error { return list(ctx, l, "ipaddresspools", ours.Pools.List, &l.out.Pools) })
	g.Go(func() error { return list(ctx, l, "l2domains", ours.Domains.List, &l.out.Domains) })
	g.Go(func() error { return list(ctx, l, "bgppeers", ours.Peers.List, &l.out.Peers) })
	g.Go(func() error {
		return list(ctx, l, "bgpadvertisements", ours.Advertisements.List, &l.out.Advertisements)
	})
	g.Go(func() error { return list(ctx, l, "bfdprofiles", ours.Profiles.List, &l.out.Profiles) })
	g.Go(func() error { return list(ctx, l, "communities", ours.Communities.List, &l.out.Communities) })
	g.Go(func() error { return list(ctx, l, "bgpnodestatuses", ours.NodeStatuses.List, &l.out.NodeStatuses) })
	g.Go(func() error {
		return list(ctx, l, "leases", core.CoordinationV1().Leases(v1alpha1.GuardsNamespace).List, &l.out.Leases)
	})
	if ours.FRR != nil {
		g.Go(func() error {
			return listIfServed(ctx, l, frr.Configurations, ours.FRR.Configurations.List, &l.out.FRRConfigurations)
		})
		g.Go(func() error {
			return listIfServed(ctx, l, frr.NodeStates, ours.FRR.NodeStates.List, &l.out.FRRNodes)
		})
		g.Go(func() error {
			return listIfServed(ctx, l, frr.SessionStates, ours.FRR.SessionStates.List, &l.out.FRRSessions)
		})
	}
	g.Go(func() error { return l.loadEgressIPs(ctx) })
	for _, namespace := range objects.ControllerNamespaces() {
		g.Go(func() error { return l.loadLeader(ctx, namespace) })
	}
	for _, namespace := range objects.OVNNamespaces() {
		g.Go(func() error { return list(ctx, l, "pods", core.CoreV1().Pods(namespace).List, &l.out.Pods) })
	}
	if err := cmp.Or(g.Wait(), l.missingError()); err != nil {
		return nil, err
	}
	if !slices.Contains(objects.OVNNamespaces(), l.out.FRRNamespace()) {
		if err := l.loadPodsOfFRR(ctx); err != nil {
			return nil, err
		}
	}
	l.sortUnread()
	return l.out, nil
}

// loadPodsOfFRR reads the Pods in the namespace of frr-k8s, if that is known.
func (l *loader) loadPodsOfFRR(ctx context.Context) error {
	namespace := l.out.FRRNamespace()
	if namespace == "" {
		return nil
	}
	return list(ctx, l, "pods", l.core.CoreV1().Pods(namespace).List, &l.out.Pods)
}

// sortUnread sorts what the user must not read, each once.
func (l *loader) sortUnread() {
	if l.out.Leader != nil { // The controller is in one of the namespaces.
		l.out.Unread = slices.DeleteFunc(l.out.Unread, func(r string) bool { return r == objects.LeaderLease })
	}
	slices.Sort(l.out.Unread)
	l.out.Unread = slices.Compact(l.out.Unread)
}

// LoadPolicies adds the NetworkPolicies of namespaces to objects, or records that the user must not read them.
func LoadPolicies(ctx context.Context, core kubernetes.Interface, o *objects.Objects, namespaces ...string) error {
	l := &loader{core: core, out: o}
	for _, namespace := range namespaces {
		from := core.NetworkingV1().NetworkPolicies(namespace).List
		if err := listIfServed(ctx, l, "networkpolicies", from, &o.Policies); err != nil {
			return err
		}
	}
	slices.Sort(o.Unread)
	o.Unread = slices.Compact(o.Unread)
	return nil
}

// lists is a function that lists objects.
type lists[L runtime.Object] func(context.Context, metav1.ListOptions) (L, error)

// list reads all pages of a list. Resources that the user must not list are recorded as unread.
func list[T any, L runtime.Object](ctx context.Context, l *loader, resource string, from lists[L], into *[]*T) error {
	var all []*T
	err := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return from(ctx, o)
	}).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if item, ok := o.(any).(*T); ok {
			all = append(all, item)
		}
		return nil
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		l.out.Unread = append(l.out.Unread, resource)
		return nil
	case apierrors.IsNotFound(err) && slices.Contains(resources(), resource):
		l.missing = append(l.missing, resource)
		return nil
	case err != nil:
		return fmt.Errorf("list %s: %w", resource, err)
	}
	*into = append(*into, all...)
	return nil
}

// listIfServed is list for a kind that the API server may lack.
func listIfServed[T any, L runtime.Object](ctx context.Context, l *loader, resource string, from lists[L],
	into *[]*T) error {
	return list(ctx, l, resource, func(ctx context.Context, o metav1.ListOptions) (L, error) {
		page, err := from(ctx, o)
		if apierrors.IsNotFound(err) {
			none, _ := reflect.New(reflect.TypeFor[L]().Elem()).Interface().(L) // L is a pointer to a list
			return none, nil
		}
		return page, err
	}, into)
}

func (l *loader) loadService(ctx context.Context, key world.Key) error {
	s, err := l.core.CoreV1().Services(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Service %s: %w", key, err)
	}
	l.mu.Lock()
	l.out.Services = []*corev1.Service{s}
	l.mu.Unlock()
	return list(ctx, l, "endpointslices", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.LabelSelector = discoveryv1.LabelServiceName + "=" + key.Name
		return l.core.DiscoveryV1().EndpointSlices(key.Namespace).List(ctx, o)
	}, &l.out.Slices)
}

// loadEgressIPs reads the EgressIPs of OVN-Kubernetes. Most users may not: what is explained to them needs none.
func (l *loader) loadEgressIPs(ctx context.Context) error {
	all, err := listNewest(ctx, l.ours, []schema.GroupVersionResource{convert.EgressIPs()}, metav1.NamespaceAll, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		l.out.UnreadEgressIPs = true
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("list EgressIPs: %w", err)
	default:
		l.out.EgressIPs = all
	}
	return nil
}

// loadLeader reads the Lease of the leading controller in a namespace, which need not exist. The one that was renewed
// last counts.
func (l *loader) loadLeader(ctx context.Context, namespace string) error {
	lease, err := l.core.CoordinationV1().Leases(namespace).Get(ctx, objects.LeaderName, metav1.GetOptions{})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		l.out.Unread = append(l.out.Unread, objects.LeaderLease)
		return nil
	case err != nil:
		return fmt.Errorf("get Lease %s/%s: %w", namespace, objects.LeaderName, err)
	}
	if was := l.out.Leader; was == nil || was.Spec.RenewTime.Before(lease.Spec.RenewTime) {
		l.out.Leader = lease
	}
	return nil
}
