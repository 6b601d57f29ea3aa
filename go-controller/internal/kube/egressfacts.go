// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// egressPause is the interval at which a controller checks whether the API server has EgressServices.
const egressPause = 30 * time.Second

// watchEgress adds the informer for OVN-Kubernetes' EgressServices.
func (w *Watch) watchEgress(kube kubernetes.Interface, ours *Clients, facts *Facts) {
	open := func() cache.Controller {
		return newInformer(ours.Dynamic.Resource(convert.EgressServices()), &unstructured.Unstructured{},
			whole[*unstructured.Unstructured], facts.setEgress)
	}
	lost := func() {
		facts.replaceFact(func() bool {
			had := len(facts.egress) > 0
			clear(facts.egress)
			return had
		})
	}
	w.egress = newDiscovered(kube, convert.EgressServices(), egressPause, open, lost, func() {})
}

// egressKinds returns the kind that is read for EgressServices.
func (w *Watch) egressKinds() []*discovered {
	if w.egress == nil {
		return nil
	}
	return []*discovered{w.egress}
}

// setEgress stores the host of an EgressService.
func (f *Facts) setEgress(old, now *unstructured.Unstructured) {
	of := cmp.Or(now, old)
	key := world.Key{Namespace: of.GetNamespace(), Name: of.GetName()}
	f.replaceFact(func() bool {
		was, had := f.egress[key]
		host, has := "", false
		if now != nil {
			host, has = convert.EgressHost(now)
		}
		if delete(f.egress, key); has {
			f.egress[key] = host
		}
		return was != host || had != has
	})
}
