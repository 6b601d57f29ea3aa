// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Facts stores the newest objects and their conversions. Informers call its set methods. The other methods may be
// called from any goroutine.
type Facts struct {
	convert convert.Options
	hooks   Hooks

	mu        sync.Mutex
	services  map[world.Key]*service
	endpoints map[world.Key][]*endpoints
	// staleEndpoints are the Services of ours whose endpoints have changed since readEndpoints.
	staleEndpoints map[world.Key]bool
	nodes          map[string]*node
	reports        map[string]*nodeReport
	// expiredLeases are the nodes whose Lease has expired.
	expiredLeases map[string]bool
	pools         map[string]*pool
	domains       map[string]*v1alpha1.L2Domain
	bgp           bgpFacts
	frr           frrFacts
	claims        claimFacts
	// egress are the hosts of EgressServices.
	egress map[world.Key]string
	// egressIPs are the addresses of EgressIPs that have any, by name.
	egressIPs map[string][]netip.Addr
	// egressState returns Snapshot.EgressIPsUnread; it is nil where EgressIPs are not read. egressIPsUnread is what it
	// returned last.
	egressState     func() string
	egressIPsUnread string
	// namespaces are the labels of the namespaces. No other part of a Namespace is used.
	namespaces convert.Namespaces
	// primaryNetworks are the namespaces with convert.LabelPrimaryNetwork.
	primaryNetworks map[string]bool
	// releasing are the Services that are no longer ours but still have our status.
	releasing map[world.Key]*corev1.Service
	openShift openShiftFacts
	listed    listedFacts
	// resolved are the domains with resolved selectors; nil after a change.
	resolved []*world.Domain
	changes  changes
}

type service struct {
	object *corev1.Service
	// world is nil if the Service is not ours.
	world *world.Service
	// waits is when the Service was first seen without an address; the zero time if it always had one.
	waits time.Time
}

type node struct {
	object *corev1.Node
	world  *world.Node
}

type pool struct {
	object *v1alpha1.IPAddressPool
	world  *world.Pool
	// selects reports whether the namespace selectors match the labels of a namespace.
	selects func(labels map[string]string) bool
	// stale reports whether the namespaces that the selectors match have changed since world was converted.
	stale bool
}

// Hooks are callbacks of Facts. They must not block.
type Hooks struct {
	// Wake is called when a decision could have a different result.
	Wake func()
	// Changed is called when the object of a Service was replaced.
	Changed func(world.Key)
	// Expected reports whether these are the addresses that the Service was assigned. If so, their appearance in its
	// status needs no decision.
	Expected func(world.Key, []netip.Addr) bool
	// Awaited returns the version of ServicePlans up to which statuses await what the agents of zones report. Nil means
	// that they await nothing.
	Awaited func() uint64
	// Lags reports whether a status says that the zone of a node has not applied ServicePlans with backends there; nil if
	// no status does.
	Lags func(node string) bool
}

// NewFacts returns the Facts of an empty cluster.
func NewFacts(o convert.Options, hooks Hooks) *Facts {
	return &Facts{
		convert:   o,
		hooks:     hooks,
		services:  map[world.Key]*service{},
		endpoints: map[world.Key][]*endpoints{},

		staleEndpoints: map[world.Key]bool{},
		nodes:          map[string]*node{},
		reports:        map[string]*nodeReport{},
		expiredLeases:  map[string]bool{},
		pools:          map[string]*pool{},
		domains:        map[string]*v1alpha1.L2Domain{},
		namespaces:     convert.Namespaces{},
		releasing:      map[world.Key]*corev1.Service{},

		primaryNetworks: map[string]bool{},
		bgp:             newBGPFacts(),
		egress:          map[world.Key]string{},
		egressIPs:       map[string][]netip.Addr{},
	}
}

// invalidate invalidates the results of selectors.
func (f *Facts) invalidate() {
	f.resolved, f.bgp.read, f.changes.others = nil, nil, true
}

// keepService returns what is stored of a Service: of one that is not ours and has no status of ours, which is never
// written, only what shows that. Tenants can create many Services of a megabyte, also of other types.
func (f *Facts) keepService(s *corev1.Service) *corev1.Service {
	if f.IsManaged(s) || hasOurStatus(s) {
		return s
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID,
			ResourceVersion: s.ResourceVersion, DeletionTimestamp: s.DeletionTimestamp},
		Spec: corev1.ServiceSpec{Type: s.Spec.Type, LoadBalancerClass: s.Spec.LoadBalancerClass},
	}
}

// hasOurStatus reports whether a Service has our conditions, which are removed once it is no longer ours.
func hasOurStatus(s *corev1.Service) bool {
	return meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated) != nil
}

func (f *Facts) setService(old, now *corev1.Service) {
	s := cmp.Or(now, old)
	key := world.Key{Namespace: s.Namespace, Name: s.Name}
	f.mu.Lock()
	var was, is *world.Service
	var waits time.Time
	var listed []netip.Prefix
	last := f.services[key]
	if last != nil {
		was, waits = last.world, last.waits
	}
	_, hadLeft := f.releasing[key]
	delete(f.services, key)
	delete(f.releasing, key)
	delete(f.staleEndpoints, key)
	if now != nil {
		options := f.convert
		if last != nil && last.world != nil {
			options.Former = &convert.Former{Object: last.object, World: last.world}
		}
		is, _ = convert.Service(now, f.slicesOf(key), options)
		if is != nil && is.SharingKey != "" {
			is.SelectorHash = selectorHash(last, now)
		}
		listed = convert.ListedExternalIPs(now, is)
		f.services[key] = &service{now, is, pendingSince(was, is, waits)}
		if is == nil && hasOurStatus(now) {
			f.releasing[key] = now
		}
	}
	_, left := f.releasing[key]
	specChanged := was != nil && is != nil && !sameRequest(old, now)
	if was != nil || is != nil {
		f.changes.add(key, was, is, specChanged)
	}
	f.listed.set(key, listed)
	if left || hadLeft {
		f.changes.others = true
	}
	f.mu.Unlock()
	if was == nil && is == nil && !left && !hadLeft {
		return
	}
	f.hooks.Changed(key)
	if was == nil || is == nil || specChanged || freed(was, is) ||
		!slices.Equal(was.AssignedHosts, is.AssignedHosts) || !f.hooks.Expected(key, is.Assigned) {
		f.hooks.Wake()
	}
}

// freed reports whether the status showed an address before that it does not show now. Other Services may be waiting
// for it.
func freed(was, is *world.Service) bool {
	removed := func(before, now []netip.Addr) bool {
		if slices.Equal(before, now) {
			return false // most events; a Service may have thousands of external IPs
		}
		has := world.AddrSet(now)
		return slices.ContainsFunc(before, func(a netip.Addr) bool { return !has(a) })
	}
	return removed(was.Shown(), is.Shown()) || removed(was.HeldExternalIPs, is.HeldExternalIPs)
}

// sameRequest reports whether two versions of a Service have the same spec, labels, annotations and UID. The update
// event for our own status write then triggers no pass.
func sameRequest(a, b *corev1.Service) bool {
	return a.UID == b.UID && maps.Equal(a.Annotations, b.Annotations) && maps.Equal(a.Labels, b.Labels) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// Snapshot returns the newest facts. The caller adds the facts that are only in the OVN databases. Snapshot also
// returns the UIDs of the Services that are no longer ours but still have our status.
func (f *Facts) Snapshot(cluster world.Cluster) (*world.Snapshot, map[world.Key]types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readEndpoints()
	w := &world.Snapshot{
		Cluster: cluster, Changed: f.changes.services, PrimaryNetworks: maps.Clone(f.primaryNetworks),
	}
	f.changes = changes{}
	f.addOpenShift(&w.Cluster)
	w.Reports, w.AnnouncedReports = f.conflicts()
	w.Probed = f.probed()
	for _, p := range f.pools {
		if p.stale {
			p.world, p.stale = convert.WithNamespaces(p.world, p.object, f.namespaces), false
		}
		w.Pools = append(w.Pools, p.world)
	}
	// The order decides between nodes that report the same, for example one chassis. It must not change by itself:
	// statuses of all Services name nodes.
	for _, name := range sortedKeys(f.nodes) {
		w.Nodes = append(w.Nodes, f.withReport(f.nodes[name].world))
	}
	for _, s := range f.services {
		if s.world != nil {
			w.Services = append(w.Services, s.world)
		}
	}
	if f.resolved == nil {
		pools, nodes := f.objects()
		f.resolved = make([]*world.Domain, 0, len(f.domains))
		for _, d := range f.domains {
			f.resolved = append(f.resolved, convert.Domain(d, pools, nodes))
		}
	}
	w.Domains, w.Listed = f.resolved, f.listed.snapshot(time.Now(), w.Services)
	f.addBGP(w)
	w.Claims = f.readClaims()
	w.EgressHosts, w.EgressIPs = maps.Clone(f.egress), maps.Clone(f.egressIPs)
	if f.egressState != nil {
		f.egressIPsUnread = f.egressState()
		w.EgressIPsUnread = f.egressIPsUnread
	}
	return w, f.addLeaving(w)
}

func (f *Facts) objects() ([]*v1alpha1.IPAddressPool, []*corev1.Node) {
	pools := make([]*v1alpha1.IPAddressPool, 0, len(f.pools))
	for _, p := range f.pools {
		pools = append(pools, p.object)
	}
	nodes := make([]*corev1.Node, 0, len(f.nodes))
	for _, n := range f.nodes {
		nodes = append(nodes, n.object)
	}
	return pools, nodes
}

// IsManaged reports whether a Service is ours to serve.
func (f *Facts) IsManaged(s *corev1.Service) bool { return convert.Ours(s, f.convert) }

// Service returns the newest object, nil if there is none.
func (f *Facts) Service(key world.Key) *corev1.Service {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.services[key]; s != nil {
		return s.object
	}
	return nil
}

// Pool returns the newest object; false if there is none.
func (f *Facts) Pool(name string) (*v1alpha1.IPAddressPool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.pools[name]
	if !ok {
		return nil, false
	}
	return p.object, true
}

// Domain returns the newest object; false if there is none.
func (f *Facts) Domain(name string) (*v1alpha1.L2Domain, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.domains[name]
	return d, ok
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
