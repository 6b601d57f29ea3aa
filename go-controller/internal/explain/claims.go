// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// claimKinds lists the kinds of Cluster API's contract that the API server has.
const claimKinds = "kubectl api-resources --api-group=ipam.cluster.x-k8s.io   # IPAddressClaim and IPAddress must be " +
	"there"

// mendClaims returns the command against the reason why the Service gets no address of its claim.
func (p *path) mendClaims(reason string) string {
	pool := objects.Named(p.objects.Pools, p.servingPool())
	if pool == nil || pool.Spec.ExternalPool == nil {
		return p.describeClaims()
	}
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready != nil && ready.Reason == v1alpha1.ReasonNoClaims:
		return claimKinds
	case reason == v1alpha1.ReasonClaimUnusable: // not the claims of other addresses that the Service has
		at := slices.IndexFunc(p.world.Pools, func(w *world.Pool) bool { return w.Name == pool.Name })
		return printable.Command("kubectl -n %s delete ipaddressclaims.ipam.cluster.x-k8s.io %s   # created again; before, "+
			"correct the provider's pool, or create a Service again that keeps the address",
			p.objects.ControllerNamespace(), world.ClaimName(p.world.Pools[at], string(p.object.UID)))
	}
	return p.describeClaims()
}

// mendClaimOf returns the command against the reason why a Service gets no address from a pool: the first one whose
// condition has it; empty if there is none.
func (p *path) mendClaimOf(pool, reason string) string {
	for _, s := range sorted(p.objects.Services) {
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAllocated)
		key := world.Key{Namespace: s.Namespace, Name: s.Name}
		if c == nil || c.Reason != reason || p.serviceOf(key) == nil {
			continue
		}
		if of := p.to(Question{Service: key, Now: p.Now}); of.servingPool() == pool {
			return of.mendClaims(reason)
		}
	}
	return ""
}

// describeClaims returns the command that shows what a provider says about the claims of the Service.
func (p *path) describeClaims() string {
	return printable.Command("kubectl -n %s describe ipaddressclaims.ipam.cluster.x-k8s.io -l "+v1alpha1.LabelServiceUID+
		"=%s", p.objects.ControllerNamespace(), string(p.object.UID))
}
