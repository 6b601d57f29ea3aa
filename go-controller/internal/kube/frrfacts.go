// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// frrPause is the interval at which a controller checks whether the API server has the kinds of frr-k8s.
	frrPause = 5 * time.Second
	// frrSyncLatest is how long the first decision waits for optionalKinds. What needs none must
	// not wait for those that cannot be read, but a restart must not report sessions as unknown for a moment, either.
	frrSyncLatest = 10 * time.Second
)

// frrFacts are the objects of frr-k8s.
type frrFacts struct {
	// namespace is that of frr-k8s, empty if it is not used. state returns FRR.Missing and FRR.Unread.
	namespace string
	state     func() (missing, unread string)
	// daemons are the Pods of frr-k8s, and daemonsUnread returns why they are not known, empty if they are.
	daemons       frr.Daemons
	daemonsUnread func() string

	configurations map[string]*frr.Configuration
	nodes          map[string]*world.FRRNode
	// sessions are those of each node.
	sessions  map[string]frr.Sessions
	passwords map[string]string
	refused   map[string]string
	// routeAdvertisements are the objects of OVN-Kubernetes, by name.
	routeAdvertisements map[string]*frr.RouteAdvertisements
	// read are the conversions of the FRRConfigurations that have not changed since, nor has any Node.
	read map[string]*world.FRRConfiguration
}

// watchFRR adds the informers for the kinds of frr-k8s, and for the Secrets that its sessions use.
func (w *Watch) watchFRR(kube kubernetes.Interface, ours *Clients, facts *Facts) {
	facts.mu.Lock()
	facts.frr = frrFacts{namespace: ours.FRRNamespace, state: w.frrState,
		configurations: map[string]*frr.Configuration{}, nodes: map[string]*world.FRRNode{},
		sessions: map[string]frr.Sessions{}, passwords: map[string]string{},
		read: map[string]*world.FRRConfiguration{}, routeAdvertisements: map[string]*frr.RouteAdvertisements{},
		daemons: frr.Daemons{}, daemonsUnread: w.frrDaemonsUnread}
	facts.mu.Unlock()
	add := func(resource string, forget func(), open func() cache.Controller) {
		lost := func() { // with the kind, its objects are gone
			facts.mu.Lock()
			forget()
			facts.mu.Unlock()
		}
		w.frr = append(w.frr, newDiscovered(kube, frr.GroupVersion().WithResource(resource), frrPause, open, lost,
			facts.frrChanged))
	}
	add(frr.Configurations, func() { clear(facts.frr.configurations); clear(facts.frr.read) }, func() cache.Controller {
		list := smallPages[*frr.ConfigurationList]{ours.FRR.Configurations, configurationsPerPage}
		return newInformer(list, &frr.Configuration{}, frr.TrimmedConfiguration, facts.setConfiguration)
	})
	add(frr.NodeStates, func() { clear(facts.frr.nodes) }, func() cache.Controller {
		list := smallPages[*frr.NodeStateList]{ours.FRR.NodeStates, statesPerPage}
		return newInformer(list, &frr.NodeState{}, frr.Trimmed, facts.setFRRNode)
	})
	add(frr.SessionStates, func() { clear(facts.frr.sessions) }, func() cache.Controller {
		list := smallPages[*frr.SessionStateList]{ours.FRR.SessionStates, sessionsPerPage}
		return newInformer(list, &frr.SessionState{}, frr.TrimmedSession, facts.setFRRSession)
	})
	add(frr.Configurations, func() { clear(facts.frr.passwords) }, func() cache.Controller {
		secrets := passwordSecrets{kube.CoreV1().Secrets(ours.FRRNamespace)}
		return newInformer(secrets, &corev1.Secret{}, trimmedSecret, facts.setFRRSecret)
	})
	w.frr[len(w.frr)-1].reads = "secrets"
	// What can be written does not depend on Pods, so they are not among w.frr. Without the kinds, none are read.
	w.frrDaemons = newDiscovered(kube, frr.GroupVersion().WithResource(frr.Configurations), frrPause,
		func() cache.Controller {
			pods := smallPages[*corev1.PodList]{kube.CoreV1().Pods(ours.FRRNamespace), podsPerPage}
			return newInformer(pods, &corev1.Pod{}, frr.TrimmedPod, facts.setFRRPod)
		}, func() {
			facts.mu.Lock()
			clear(facts.frr.daemons)
			facts.mu.Unlock()
		}, facts.frrChanged)
	w.frrDaemons.reads = "pods"
	w.routeAdvertisements = newDiscovered(kube, frr.RouteAdvertisementsResource(), frrPause, func() cache.Controller {
		return newInformer(ours.FRR.RouteAdvertisements, &frr.RouteAdvertisements{}, whole[*frr.RouteAdvertisements],
			facts.setRouteAdvertisements)
	}, facts.forgetRouteAdvertisements, func() {})
}

// frrKinds returns all kinds that are read because frr-k8s is used.
func (w *Watch) frrKinds() []*discovered {
	if w.routeAdvertisements == nil {
		return slices.Clip(w.frr)
	}
	return append(slices.Clip(w.frr), w.routeAdvertisements, w.frrDaemons)
}

// smallPages lists objects in small pages: until they are trimmed, each may have more than a megabyte.
type smallPages[L runtime.Object] struct {
	lister[L]
	limit int64
}

// statesPerPage, sessionsPerPage, configurationsPerPage and podsPerPage are the numbers of FRRNodeStates,
// BGPSessionStates, FRRConfigurations and Pods in a page. Genuine FRRNodeStates are large, too: each has the
// whole configuration of its FRR.
const statesPerPage, sessionsPerPage, configurationsPerPage, podsPerPage = 16, 64, 16, 64

func (p smallPages[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	o.Limit = p.limit
	if o.Continue == "" { // API servers may divide no list but the newest
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
	return p.lister.List(ctx, o)
}

// IsWatchListSemanticsUnSupported is that of the client.
func (p smallPages[L]) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(p.lister)
}

// passwordSecrets lists and watches only Secrets of the type for passwords: the namespace of frr-k8s has others, too.
type passwordSecrets struct{ lister[*corev1.SecretList] }

func (s passwordSecrets) List(ctx context.Context, o metav1.ListOptions) (*corev1.SecretList, error) {
	o.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeBasicAuth)).String()
	return s.lister.List(ctx, o)
}

func (s passwordSecrets) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeBasicAuth)).String()
	return s.lister.Watch(ctx, o)
}

// IsWatchListSemanticsUnSupported is that of the client.
func (s passwordSecrets) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.lister)
}

// optionalKinds returns the kinds for which the first decision waits for a limited time only.
func (w *Watch) optionalKinds() []*discovered {
	return slices.Concat(w.frrKinds(), w.claimKinds(), w.egress)
}

// waitForOthers waits until the objects of those kinds have been read, for a limited time.
func (w *Watch) waitForOthers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, frrSyncLatest)
	defer cancel()
	for _, d := range w.optionalKinds() {
		select {
		case <-ctx.Done():
			return
		case <-d.synced:
		}
	}
}

// frrState returns FRR.Missing and FRR.Unread.
func (w *Watch) frrState() (missing, unread string) {
	for _, d := range w.frr {
		if d.absent() {
			return fmt.Sprintf("the API server has no %s (%s): install frr-k8s, or set spec.backend: GoBGP",
				d.versions[0].Resource, frr.GroupVersion()), ""
		}
	}
	for _, d := range w.frr {
		if d.hasSynced() {
			continue
		}
		return "", "the objects of frr-k8s have not been read (dist/manifests/components/frr-k8s grants that)" +
			frr.Bounded(d.refused())
	}
	return "", ""
}

// frrDaemonsUnread returns why the Pods of frr-k8s are not known, empty if they are.
func (w *Watch) frrDaemonsUnread() string {
	if w.frrDaemons.hasSynced() {
		return ""
	}
	return "the Pods of frr-k8s have not been read, so what it reports of the node may be out of date " +
		"(dist/manifests/components/frr-k8s grants that)" + frr.Bounded(w.frrDaemons.refused())
}

// frrChanged makes the controller decide again after a kind of frr-k8s appeared, was read, or vanished.
func (f *Facts) frrChanged() {
	f.mu.Lock()
	missing, unread := f.frr.state()
	state := missing + unread + f.frr.daemonsUnread()
	relevant := f.bgp.read == nil || f.bgp.frrState != state
	if relevant {
		f.bgp.frrState = state
		f.invalidate()
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

// replaceFact stores or removes a value, and wakes the controller.
func (f *Facts) replaceFact(change func() (relevant bool)) {
	f.mu.Lock()
	relevant := change()
	if relevant {
		f.changes.others = true
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

func (f *Facts) setConfiguration(old, now *frr.Configuration) {
	f.replaceFact(func() bool {
		delete(f.frr.configurations, cmp.Or(now, old).Name)
		if now != nil {
			f.frr.configurations[now.Name] = now
		}
		delete(f.frr.read, cmp.Or(now, old).Name)
		return old == nil || now == nil || !frr.SameContent(old, now)
	})
}

func (f *Facts) setFRRNode(old, now *frr.NodeState) {
	f.replaceFact(func() bool {
		was := f.frr.nodes[cmp.Or(now, old).Name]
		delete(f.frr.nodes, cmp.Or(now, old).Name)
		if now == nil {
			return true
		}
		is := frr.ReadNode(now)
		f.frr.nodes[now.Name] = is
		return was == nil || was.Problem != is.Problem || was.Unread != is.Unread ||
			!maps.Equal(was.Restrictions, is.Restrictions) || !maps.EqualFunc(was.Running, is.Running, slices.Equal)
	})
}

func (f *Facts) setFRRSession(old, now *frr.SessionState) {
	f.replaceFact(func() bool {
		counts := func(s *frr.SessionState) bool { return s != nil && s.Status.VRF == "" }
		if counts(old) {
			sessions := f.frr.sessions[old.Status.Node]
			if delete(sessions, old.Name); len(sessions) == 0 {
				delete(f.frr.sessions, old.Status.Node)
			}
		}
		if counts(now) {
			if f.frr.sessions[now.Status.Node] == nil {
				f.frr.sessions[now.Status.Node] = frr.Sessions{}
			}
			f.frr.sessions[now.Status.Node][now.Name] = now.Status
		}
		return counts(old) != counts(now) || counts(now) && old.Status != now.Status
	})
}

func (f *Facts) setFRRPod(old, now *corev1.Pod) {
	f.replaceFact(func() bool { return f.frr.daemons.Set(old, now) })
}

func (f *Facts) setFRRSecret(old, now *corev1.Secret) {
	f.replaceFact(func() bool {
		name := cmp.Or(now, old).Name
		was, had := f.frr.passwords[name]
		is, has := "", false
		delete(f.frr.passwords, name)
		if now != nil {
			is, has = frr.Password(now)
		}
		if has {
			f.frr.passwords[name] = is
		}
		if was != is {
			f.bgp.read = nil
		}
		return was != is || had != has
	})
}

func (f *Facts) setRouteAdvertisements(old, now *frr.RouteAdvertisements) {
	f.replaceFact(func() bool {
		delete(f.frr.routeAdvertisements, cmp.Or(now, old).Name)
		if now != nil {
			f.frr.routeAdvertisements[now.Name] = now
		}
		return old == nil || now == nil || !frrapi.Equal(&old.Spec, &now.Spec)
	})
}

// forgetRouteAdvertisements removes all, when the kind was removed.
func (f *Facts) forgetRouteAdvertisements() {
	f.replaceFact(func() bool {
		clear(f.frr.routeAdvertisements)
		return true
	})
}

// SetFRRRefused stores why the API server refused the last writes, by peer.
func (f *Facts) SetFRRRefused(refused map[string]string) {
	f.replaceFact(func() bool {
		changed := !maps.Equal(f.frr.refused, refused)
		f.frr.refused = refused
		return changed
	})
}

// FRRConfiguration returns the newest object; false if there is none.
func (f *Facts) FRRConfiguration(name string) (*frr.Configuration, bool) {
	return newest(f, f.frr.configurations, name)
}

// readFRR returns what frr-k8s has; nil if it is not used. The caller holds mu.
func (f *Facts) readFRR() *world.FRR {
	if f.frr.namespace == "" {
		return nil
	}
	out := &world.FRR{Namespace: f.frr.namespace, Nodes: map[string]*world.FRRNode{},
		Passwords: maps.Clone(f.frr.passwords), Refused: f.frr.refused, Sessions: map[string]map[string]string{},
		Stopped: map[string]string{}}
	out.Missing, out.Unread = f.frr.state()
	_, nodes := f.objects()
	for _, name := range sortedKeys(f.frr.configurations) {
		if f.frr.read[name] == nil {
			f.frr.read[name] = frr.Read(f.frr.configurations[name], nodes)
		}
		out.Configurations = append(out.Configurations, f.frr.read[name])
	}
	var peers []string
	for name, p := range f.bgp.peers {
		if p.Spec.Backend == v1alpha1.BackendFRRK8s {
			peers = append(peers, name)
		}
	}
	out.Selecting = frr.Selecting(slices.Collect(maps.Values(f.frr.routeAdvertisements)), peers)
	unread := f.frr.daemonsUnread()
	for name := range f.nodes { // what is reported of others has no effect
		frr.AddReports(out, name, f.frr.nodes[name], f.frr.sessions[name])
		if why := cmp.Or(unread, f.frr.daemons.Stopped(f.frr.namespace, name)); why != "" {
			out.Stopped[name] = why
		}
	}
	return out
}
