// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// claimPause is the interval at which a controller checks which versions of Cluster API's contract the API server has.
// Claims are read also if no pool is external: those of a pool that is gone are deleted when their Services are.
const claimPause = 5 * time.Second

// claimFacts are the IPAddressClaims of ours, and the IPAddresses in their namespace, by name.
type claimFacts struct {
	// namespace is that of the claims. state returns Claims.Missing; it is nil where claims are not read.
	namespace string
	state     func() string
	// missing is what state returned to claimsChanged last.
	missing string

	claims, addresses map[string]*unstructured.Unstructured
	refused           map[string]string
	deleted           map[string]bool
	// read is the conversion of claims and addresses; nil after a change.
	read map[string]*world.Claim
}

// watchClaims adds the informers for Cluster API's kinds.
func (w *Watch) watchClaims(kube kubernetes.Interface, ours *Clients, facts *Facts) {
	namespace := ours.ClaimNamespace
	c := &facts.claims
	*c = claimFacts{namespace: namespace, state: w.claimState, claims: map[string]*unstructured.Unstructured{},
		addresses: map[string]*unstructured.Unstructured{}}
	if namespace == "" {
		return
	}
	add := func(versions []schema.GroupVersionResource, selector string, objects map[string]*unstructured.Unstructured,
		relevant func(old, now *unstructured.Unstructured) bool) *discovered {
		store := func(change func() bool) {
			facts.replaceFact(func() bool {
				changed := change()
				if changed {
					c.read = nil
				}
				return changed
			})
		}
		open := func(version schema.GroupVersionResource) cache.Controller {
			lister := selected{ours.Dynamic.Resource(version).Namespace(namespace), selector}
			return newInformer(lister, &unstructured.Unstructured{}, whole[*unstructured.Unstructured],
				func(old, now *unstructured.Unstructured) {
					store(func() bool {
						delete(objects, cmp.Or(now, old).GetName())
						if now != nil {
							objects[now.GetName()] = now
						}
						return old == nil || now == nil || relevant(old, now)
					})
				})
		}
		lost := func() { store(func() bool { clear(objects); return true }) }
		return newDiscoveredVersions(kube, versions, claimPause, open, lost, facts.claimsChanged)
	}
	w.claims = add(convert.ClaimResources(), v1alpha1.LabelServiceUID, c.claims,
		func(old, now *unstructured.Unstructured) bool {
			return *convert.Claim(old, c.addresses) != *convert.Claim(now, c.addresses)
		})
	w.addresses = add(convert.AddressResources(), "", c.addresses, func(old, now *unstructured.Unstructured) bool {
		return !equality.Semantic.DeepEqual(old.Object["spec"], now.Object["spec"])
	})
}

// claimKinds returns the kinds that are read for external pools.
func (w *Watch) claimKinds() []*discovered {
	if w.claims == nil {
		return nil
	}
	return []*discovered{w.claims, w.addresses}
}

// claimState returns Claims.Missing.
func (w *Watch) claimState() string {
	kinds := w.claimKinds()
	if kinds == nil {
		return "the controller has no namespace for IPAddressClaims (--leader-elect-lease-namespace)"
	}
	for _, d := range kinds {
		if d.absent() {
			return convert.MissingClaimKinds(d.String())
		}
	}
	for _, d := range kinds {
		if !d.hasSynced() {
			return fmt.Sprintf("%s have not been read%s", d, convert.Bounded(d.refused()))
		}
	}
	return ""
}

// claimsChanged makes the controller decide again after a kind appeared, was read, or vanished.
func (f *Facts) claimsChanged() {
	f.replaceFact(func() bool {
		was := f.claims.missing
		f.claims.missing = f.claims.state()
		return was != f.claims.missing
	})
}

// selected lists and watches only objects with a label.
type selected struct {
	lister[*unstructured.UnstructuredList]
	label string
}

func (s selected) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	o.LabelSelector = s.label
	return s.lister.List(ctx, o)
}

func (s selected) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.LabelSelector = s.label
	return s.lister.Watch(ctx, o)
}

// IsWatchListSemanticsUnSupported is that of the client.
func (s selected) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.lister)
}

// readClaims returns the claims; nil where they are not read. The caller holds mu.
func (f *Facts) readClaims() *world.Claims {
	c := &f.claims
	if c.state == nil {
		return nil
	}
	if c.read == nil {
		c.read = make(map[string]*world.Claim, len(c.claims))
		for name, u := range c.claims {
			c.read[name] = convert.Claim(u, c.addresses)
		}
	}
	return &world.Claims{Namespace: c.namespace, Missing: c.state(), ByName: c.read, Refused: c.refused,
		Deleted: c.deleted}
}

// setUnwrittenClaims stores why the API server refused the last writes, by claim, and those that are not created yet
// because others delete them.
func (f *Facts) setUnwrittenClaims(refused map[string]string, deleted map[string]bool) {
	f.replaceFact(func() bool {
		changed := !maps.Equal(f.claims.refused, refused) || !maps.Equal(f.claims.deleted, deleted)
		f.claims.refused, f.claims.deleted = refused, deleted
		return changed
	})
}

// claim returns the newest object; nil if there is none.
func (f *Facts) claim(name string) *unstructured.Unstructured {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.claims.claims[name]
}
