// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The kinds of Cluster API's contract for address management (Cluster API, "IPAM Integration"). Their versions v1beta1
// and v1beta2 agree in the fields that are read and written here, except for where conditions are.
const (
	claimGroup    = "ipam.cluster.x-k8s.io"
	claimKind     = "IPAddressClaim"
	claimResource = "ipaddressclaims"
	addrResource  = "ipaddresses"
)

// ClaimResources returns the resource of IPAddressClaims in the known versions of the contract, newest first.
func ClaimResources() []schema.GroupVersionResource { return contract(claimResource) }

// AddressResources is ClaimResources for IPAddresses.
func AddressResources() []schema.GroupVersionResource { return contract(addrResource) }

// MissingClaimKinds is why claims can't be used: the API server does not have these resources.
func MissingClaimKinds(resources ...string) string {
	return "the API server has no " + strings.Join(resources, " and ") + ": install Cluster API's " +
		"CustomResourceDefinitions and a provider (docs/tasks/external-pools.md)"
}

func contract(resource string) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, version := range []string{"v1beta2", "v1beta1"} {
		out = append(out, schema.GroupVersionResource{Group: claimGroup, Version: version, Resource: resource})
	}
	return out
}

// IsOurClaim reports whether an IPAddressClaim was created by this project.
func IsOurClaim(u *unstructured.Unstructured) bool {
	return u.GetLabels()[v1alpha1.LabelServiceUID] != ""
}

// Claim converts an IPAddressClaim. addresses are the IPAddresses in its namespace, by name.
func Claim(u *unstructured.Unstructured, addresses map[string]*unstructured.Unstructured) *world.Claim {
	out := &world.Claim{Name: u.GetName(), Namespace: u.GetLabels()[v1alpha1.LabelServiceNamespace],
		UID: u.GetLabels()[v1alpha1.LabelServiceUID], Pool: Bounded(u.GetAnnotations()[v1alpha1.AnnotationIPAddressPool]),
		Ref: world.PoolRef{APIGroup: Bounded(text(u, "spec", "poolRef", "apiGroup")),
			Kind: Bounded(text(u, "spec", "poolRef", "kind")), Name: Bounded(text(u, "spec", "poolRef", "name"))},
		Deleting: u.GetDeletionTimestamp() != nil, Kept: slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerClaim)}
	name := text(u, "status", "addressRef", "name")
	if name == "" {
		out.Refusal = refusal(u)
		return out
	}
	a, err := claimedAddress(u.GetName(), addresses[name])
	if err != nil {
		out.Problem = fmt.Sprintf("IPAddress %s %v", Bounded(name), err)
	}
	out.Addr = a
	return out
}

// claimedAddress returns the address of an IPAddress, which may be nil, if that belongs to a claim.
func claimedAddress(claim string, u *unstructured.Unstructured) (netip.Addr, error) {
	if u == nil {
		return netip.Addr{}, fmt.Errorf("does not exist")
	}
	quoted := func(value string) string { return Bounded(fmt.Sprintf("%q", value)) }
	if of := text(u, "spec", "claimRef", "name"); of != claim {
		return netip.Addr{}, fmt.Errorf("belongs to another claim (spec.claimRef.name: %s)", quoted(of))
	}
	value := text(u, "spec", "address")
	a, err := v1alpha1.IPAddress(value).Parse()
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("has no address: spec.address: %s is no IPv4 or IPv6 address", quoted(value))
	case !a.IsGlobalUnicast():
		return netip.Addr{}, fmt.Errorf("has an address that no Service can have: spec.address: %s is not unicast", a)
	case a.AsSlice()[0] == 0: // RFC 1122 section 3.2.1.3, RFC 4291 sections 2.5.2 to 2.5.5 (IPv4-mapped), RFC 6052
		return netip.Addr{}, fmt.Errorf("has an address that no Service can have: spec.address: %s is reserved", a)
	}
	return a, nil
}

// refusal returns reason and message of a claim's condition Ready if it is False.
func refusal(u *unstructured.Unstructured) string {
	for _, path := range [][]string{{"status", "conditions"}, {"status", "v1beta2", "conditions"}} {
		list, _, _ := unstructured.NestedSlice(u.Object, path...)
		for _, item := range list {
			c, _ := item.(map[string]any)
			if c["type"] != "Ready" || c["status"] != string(metav1.ConditionFalse) {
				continue
			}
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			if message != "" {
				message = ": " + message
			}
			return Bounded(reason + message)
		}
	}
	return ""
}

func text(u *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(u.Object, path...)
	return value
}

// NewClaim returns the claim to create.
func NewClaim(w *world.WantedClaim, namespace string, version schema.GroupVersion) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"poolRef": map[string]any{
		"apiGroup": w.Ref.APIGroup, "kind": w.Ref.Kind, "name": w.Ref.Name}}}}
	u.SetGroupVersionKind(version.WithKind(claimKind))
	u.SetNamespace(namespace)
	u.SetName(w.Name)
	u.SetLabels(map[string]string{v1alpha1.LabelServiceUID: w.UID, v1alpha1.LabelServiceNamespace: w.Service.Namespace,
		v1alpha1.LabelServiceName: w.Service.Name})
	u.SetAnnotations(map[string]string{v1alpha1.AnnotationIPAddressPool: w.Pool})
	u.SetFinalizers([]string{v1alpha1.FinalizerClaim})
	return u
}
