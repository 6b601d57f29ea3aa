// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// UnreadClaims is the name in Unread of IPAddressClaims and IPAddresses that the user must not list.
const UnreadClaims = "ipaddressclaims"

// HasExternalPool reports whether a provider chooses the addresses of a pool.
func (o *Objects) HasExternalPool() bool {
	return slices.ContainsFunc(o.Pools, func(p *v1alpha1.IPAddressPool) bool { return p.Spec.ExternalPool != nil })
}

// SetClaims replaces the claims by those of ours in the namespace of the controller.
func (o *Objects) SetClaims(claims, addresses []*unstructured.Unstructured) {
	byName := map[string]*unstructured.Unstructured{}
	for _, a := range addresses {
		byName[a.GetName()] = a
	}
	o.Claims = &world.Claims{Namespace: o.ControllerNamespace(), ByName: map[string]*world.Claim{}}
	for _, c := range claims {
		if convert.IsOurClaim(c) {
			o.Claims.ByName[c.GetName()] = convert.Claim(c, byName)
		}
	}
}
