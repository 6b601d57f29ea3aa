// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Watch keeps facts up to date from the API server.
type Watch struct {
	needed map[string]cache.Controller
	// openShift are needed only if the API server has their kinds.
	openShift []*discovered
	// frr are the kinds of frr-k8s, which nothing else waits for longer than frrSyncLatest.
	frr []*discovered
	// routeAdvertisements are OVN-Kubernetes' kind, if frr-k8s is used. Only a finding depends on it.
	routeAdvertisements *discovered
	// frrDaemons are the Pods of frr-k8s, if it is used. Only statuses depend on them.
	frrDaemons *discovered
	// claims and addresses are Cluster API's kinds; nil if they are not read.
	claims, addresses *discovered
	// egress are OVN-Kubernetes' EgressServices and EgressIPs; nil if they are not read.
	egress []*discovered
}

// NewWatch returns the informers for the facts of a controller. Nothing is read before Run.
func NewWatch(kube kubernetes.Interface, ours *Clients, facts *Facts) *Watch {
	w := newWatch(kube, ours, facts, kube.CoreV1().Nodes(), ours.NodeStatuses, false)
	w.needed["services"] = newInformer(kube.CoreV1().Services(""), &corev1.Service{}, facts.keepListing,
		facts.setService)
	w.watchOptional(kube, networkConfigs(), ours.NetworkConfigs, openShiftPause, facts.setNetworkConfig)
	w.watchOptional(kube, networkOperators(), ours.NetworkOperators, openShiftPause, facts.setNetworkOperator)
	w.needed["leases"] = newInformer(kube.CoordinationV1().Leases(v1alpha1.GuardsNamespace), &coordinationv1.Lease{},
		whole[*coordinationv1.Lease], facts.setReport)
	if ours.FRR != nil {
		w.watchFRR(kube, ours, facts)
	}
	w.watchClaims(kube, ours, facts)
	w.watchEgress(kube, ours, facts)
	return w
}

// NewNodeWatch returns the informers for the facts of one node. They watch no other Node. What Services list without
// having it decides which addresses are drawn, and daemons advertise only those in statuses.
func NewNodeWatch(kube kubernetes.Interface, ours *Clients, facts *Facts, node string) *Watch {
	w := newWatch(kube, ours, facts, only[*corev1.NodeList]{kube.CoreV1().Nodes(), node},
		only[*v1alpha1.BGPNodeStatusList]{ours.NodeStatuses, node}, true)
	w.needed["services"] = newInformer(kube.CoreV1().Services(""), &corev1.Service{}, facts.keepService,
		facts.setService)
	w.watchOptional(kube, networkOperators(), ours.NetworkOperators, openShiftNodePause, facts.setNetworkOperator)
	return w
}

// NewModeWatch returns the informers for the facts that determine the mode in force and whether zones have their own
// databases.
func NewModeWatch(kube kubernetes.Interface, ours *Clients, facts *Facts) *Watch {
	w := &Watch{needed: map[string]cache.Controller{"ipaddresspools": newInformer(ours.Pools, &v1alpha1.IPAddressPool{},
		whole,
		facts.setPool),
		"nodes": newInformer(kube.CoreV1().Nodes(), &corev1.Node{}, trimmedNode, facts.setNode)}}
	w.watchOptional(kube, networkOperators(), ours.NetworkOperators, openShiftPause, facts.setNetworkOperator)
	return w
}

// watchOptional adds one of OpenShift's kinds, which is watched if the API server has it.
func (w *Watch) watchOptional(kube kubernetes.Interface, kind schema.GroupVersionResource,
	client lister[*unstructured.UnstructuredList],
	pause time.Duration, set func(*unstructured.Unstructured),
) {
	w.openShift = append(w.openShift, newDiscoveredNetwork(kube, kind, client, pause, set))
}

// newWatch returns the informers that controllers and nodes share. The kinds for BGP may be absent unless needsBGP is
// set: a daemon that speaks BGP would end its sessions without them.
func newWatch(kube kubernetes.Interface, ours *Clients, facts *Facts, nodes lister[*corev1.NodeList],
	statuses lister[*v1alpha1.BGPNodeStatusList], needsBGP bool) *Watch {
	return &Watch{needed: map[string]cache.Controller{
		"endpointslices": newInformer(kube.DiscoveryV1().EndpointSlices(""), &discoveryv1.EndpointSlice{}, keepEndpoints,
			facts.setEndpoints),
		"namespaces": newInformer(kube.CoreV1().Namespaces(), &corev1.Namespace{}, trimmedNamespace, facts.setNamespace),
		"nodes":      newInformer(nodes, &corev1.Node{}, trimmedNode, facts.setNode),
		"secrets": newInformer(kube.CoreV1().Secrets(v1alpha1.PasswordsNamespace), &corev1.Secret{}, trimmedSecret,
			facts.setSecret),
		"ipaddresspools": newInformer(ours.Pools, &v1alpha1.IPAddressPool{}, whole, facts.setPool),
		"l2domains":      newInformer(ours.Domains, &v1alpha1.L2Domain{}, whole, facts.setDomain),
		"bgppeers": newInformer(optional(ours.Peers, "BGPPeer", needsBGP), &v1alpha1.BGPPeer{}, whole,
			storeHandler(facts, facts.bgp.peers)),
		"bgpadvertisements": newInformer(optional(ours.Advertisements, "BGPAdvertisement", needsBGP),
			&v1alpha1.BGPAdvertisement{}, whole, storeHandler(facts, facts.bgp.advertisements)),
		"bfdprofiles": newInformer(optional(ours.Profiles, "BFDProfile", needsBGP), &v1alpha1.BFDProfile{}, whole,
			storeHandler(facts, facts.bgp.profiles)),
		"communities": newInformer(optional(ours.Communities, "Community", needsBGP), &v1alpha1.Community{}, whole,
			storeHandler(facts, facts.bgp.communities)),
		"bgpnodestatuses": newInformer(optional(statuses, "BGPNodeStatus", needsBGP), &v1alpha1.BGPNodeStatus{}, whole,
			facts.setStatus),
	}}
}

// trimmedSecret removes the annotations and all data except the password.
func trimmedSecret(s *corev1.Secret) *corev1.Secret {
	s.Annotations = nil
	for key := range s.Data {
		if key != corev1.BasicAuthPasswordKey {
			delete(s.Data, key)
		}
	}
	return s
}

func trimmedNamespace(n *corev1.Namespace) *corev1.Namespace {
	n.Annotations, n.Spec, n.Status = nil, corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	return n
}

func trimmedNode(n *corev1.Node) *corev1.Node {
	n.Status.Images, n.Status.VolumesInUse, n.Status.VolumesAttached = nil, nil, nil
	return n
}

// Run runs the informers until the context ends.
func (w *Watch) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, c := range w.needed {
		running.Go(func() { c.RunWithContext(ctx) })
	}
	for _, o := range w.openShift {
		running.Go(func() { o.run(ctx) })
	}
	for _, d := range w.optionalKinds() {
		running.Go(func() { d.run(ctx) })
	}
	running.Go(func() { LogUnreadKinds(ctx, w.UnreadKinds) })
	running.Wait()
}

// WaitForSync returns once all objects that existed at the start have been read.
func (w *Watch) WaitForSync(ctx context.Context) error {
	for _, c := range w.needed {
		if !WaitForInformer(ctx, c) {
			return w.unsynced(ctx)
		}
	}
	for _, o := range w.openShift {
		select {
		case <-ctx.Done():
			return w.unsynced(ctx)
		case <-o.synced:
		}
	}
	w.waitForOthers(ctx)
	return nil
}

func (w *Watch) unsynced(ctx context.Context) error {
	return fmt.Errorf("read the cluster's objects: %w", errors.Join(ctx.Err(), w.Healthy()))
}

// Healthy returns an error that names the resources that have not been read yet, nil if there are none.
func (w *Watch) Healthy() error {
	missing := Unread(w.needed)
	for _, o := range w.openShift {
		if !o.hasSynced() {
			missing = append(missing, o.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("not synced yet: %s", strings.Join(missing, ", "))
}

// identityPause is the time between two attempts to read the cluster's identity.
const identityPause = time.Second

// AwaitClusterID returns ClusterID once the API server can be reached, or false if ctx is done first.
func AwaitClusterID(ctx context.Context, kube kubernetes.Interface) (string, bool) {
	tick := time.NewTicker(identityPause)
	defer tick.Stop()
	for {
		id, err := ClusterID(ctx, kube)
		if err == nil {
			return id, true
		}
		if ctx.Err() == nil {
			klog.ErrorS(err, "Waiting for the API server")
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-tick.C:
		}
	}
}

// ClusterID returns the UID of namespace kube-system, which identifies this cluster.
func ClusterID(ctx context.Context, kube kubernetes.Interface) (string, error) {
	ns, err := kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	return string(ns.UID), nil
}
