// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// RouteAdvertisements is the kind of OVN-Kubernetes for which it copies FRRConfigurations.
type RouteAdvertisements struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RouteAdvertisementsSpec `json:"spec,omitempty"`
}

// RouteAdvertisementsSpec selects the FRRConfigurations of all namespaces, except copies, of which OVN-Kubernetes makes
// one of its own for each node.
type RouteAdvertisementsSpec struct {
	FRRConfigurationSelector frrapi.Selector `json:"frrConfigurationSelector,omitzero"`
}

// RouteAdvertisementsList is a list of RouteAdvertisements.
type RouteAdvertisementsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RouteAdvertisements `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (r *RouteAdvertisements) DeepCopyObject() runtime.Object { return copied(r) }

// DeepCopyObject implements runtime.Object.
func (l *RouteAdvertisementsList) DeepCopyObject() runtime.Object { return copied(l) }

// RouteAdvertisementsResource is the resource of RouteAdvertisements.
func RouteAdvertisementsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "routeadvertisements"}
}

// LabelValue returns the name of a peer as far as the label frrapi.LabelPeer can have it.
func LabelValue(peer string) string {
	return strings.TrimRight(peer[:min(len(peer), validation.LabelValueMaxLength)], "-.")
}

// Selects reports whether the objects that we write for a peer are among those that are copied.
func (r *RouteAdvertisements) Selects(peer string) bool {
	selector, err := metav1.LabelSelectorAsSelector(labelSelector(r.Spec.FRRConfigurationSelector))
	return err == nil && selector.Matches(labels.Set{frrapi.LabelPeer: LabelValue(peer)})
}

// Selecting returns the names of those that select the objects of peers, sorted, by peer.
func Selecting(all []*RouteAdvertisements, peers []string) map[string][]string {
	out := map[string][]string{}
	for _, peer := range peers {
		for _, r := range all {
			if r.Selects(peer) {
				out[peer] = append(out[peer], r.Name)
			}
		}
		slices.Sort(out[peer])
	}
	return out
}
