// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// egressPause is the interval at which a controller checks whether the API server has EgressServices and EgressIPs.
const egressPause = 30 * time.Second

// watchEgress adds the informers for OVN-Kubernetes' EgressServices and EgressIPs.
func (w *Watch) watchEgress(kube kubernetes.Interface, ours *Clients, facts *Facts) {
	w.egress = []*discovered{
		newDiscovered(kube, convert.EgressServices(), egressPause, func() cache.Controller {
			return newInformer(ours.Dynamic.Resource(convert.EgressServices()), &unstructured.Unstructured{},
				keepEgressService, facts.setEgress)
		}, func() { forget(facts, facts.egress) }, func() {}),
		newDiscovered(kube, convert.EgressIPs(), egressPause, func() cache.Controller {
			return newInformer(ours.Dynamic.Resource(convert.EgressIPs()), &unstructured.Unstructured{}, keepEgressIP,
				facts.setEgressIP)
		}, func() { forget(facts, facts.egressIPs) }, facts.egressIPsChanged),
	}
	facts.egressState = w.egressState
}

// egressState returns Snapshot.EgressIPsUnread.
func (w *Watch) egressState() string {
	if d := w.egress[1]; !d.hasSynced() {
		return fmt.Sprintf("%s have not been read, and an address of one may be allocated to a Service%s", d,
			convert.Bounded(d.refused()))
	}
	return ""
}

// egressIPsChanged makes the controller decide again after the kind of EgressIPs appeared, was read, or vanished.
func (f *Facts) egressIPsChanged() {
	f.replaceFact(func() bool {
		was := f.egressIPsUnread
		f.egressIPsUnread = f.egressState()
		return was != f.egressIPsUnread
	})
}

// forget removes the facts of a kind that was removed.
func forget[K comparable, V any](f *Facts, facts map[K]V) {
	f.replaceFact(func() bool {
		had := len(facts) > 0
		clear(facts)
		return had
	})
}

// egressIP is what is stored of an EgressIP.
type egressIP struct {
	metav1.ObjectMeta
	addrs []netip.Addr
}

func keepEgressIP(u *unstructured.Unstructured) *egressIP {
	return &egressIP{metav1.ObjectMeta{Name: u.GetName(), ResourceVersion: u.GetResourceVersion()},
		convert.EgressIPAddrs(u)}
}

func (e *egressIP) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns e itself: nothing changes it.
func (e *egressIP) DeepCopyObject() runtime.Object { return e }

// setEgressIP stores the addresses of an EgressIP. Most of its changes are those of its status.
func (f *Facts) setEgressIP(old, now *egressIP) {
	name := cmp.Or(now, old).Name
	f.replaceFact(func() bool {
		was := f.egressIPs[name]
		delete(f.egressIPs, name)
		if now != nil && len(now.addrs) > 0 {
			f.egressIPs[name] = now.addrs
		}
		return !slices.Equal(was, f.egressIPs[name])
	})
}

// egressService is what is stored of an EgressService. Where tenants may write them, each may have a selector of a
// megabyte.
type egressService struct {
	metav1.ObjectMeta
	host       string
	translates bool
}

func keepEgressService(u *unstructured.Unstructured) *egressService {
	e := &egressService{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(),
		ResourceVersion: u.GetResourceVersion()}}
	e.host, e.translates = convert.EgressHost(u)
	return e
}

func (e *egressService) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns e itself: nothing changes it.
func (e *egressService) DeepCopyObject() runtime.Object { return e }

// setEgress stores the host of an EgressService.
func (f *Facts) setEgress(old, now *egressService) {
	of := cmp.Or(now, old)
	key := world.Key{Namespace: of.Namespace, Name: of.Name}
	f.replaceFact(func() bool {
		was, had := f.egress[key]
		delete(f.egress, key)
		if now != nil && now.translates {
			f.egress[key] = now.host
		}
		is, has := f.egress[key]
		return was != is || had != has
	})
}
