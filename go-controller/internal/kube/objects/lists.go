// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Set decodes manifests. Each object replaces the one of the same kind, namespace and name, or is added. It returns
// what was set, in the form KIND/NAME. Unknown kinds and fields are errors.
func (o *Objects) Set(documents []byte) ([]string, error) {
	manifests, err := manifest.Parse(documents)
	if err != nil {
		return nil, err
	}
	var set []string
	for i, u := range manifests {
		l, ok := o.lists()[u.GetKind()]
		if !ok || u.GetAPIVersion() != l.apiVersion {
			return nil, fmt.Errorf("object %d: kind %q of apiVersion %q is not supported", i+1, u.GetKind(), u.GetAPIVersion())
		}
		if err := l.set(u.Object); err != nil {
			return nil, fmt.Errorf("object %d: %s %q: %w", i+1, u.GetKind(), u.GetName(), err)
		}
		set = append(set, u.GetKind()+"/"+u.GetName())
	}
	return set, nil
}

// Delete removes an object. The namespace is empty for kinds without one. It returns false if there is none.
func (o *Objects) Delete(kind, namespace, name string) bool {
	l, ok := o.lists()[kind]
	return ok && l.remove(namespace, name)
}

// list is a list of objects of one kind.
type list struct {
	apiVersion string
	namespaced bool
	// typed is an empty object.
	typed any
	set   func(content map[string]any) error
	// find returns the object as JSON would have it; nil if there is none.
	find   func(namespace, name string) (map[string]any, error)
	remove func(namespace, name string) bool
}

// lists returns the lists by kind.
func (o *Objects) lists() map[string]list {
	core, ours := corev1.SchemeGroupVersion.String(), v1alpha1.GroupVersion().String()
	discovery, coordination := discoveryv1.SchemeGroupVersion.String(), coordinationv1.SchemeGroupVersion.String()
	return map[string]list{
		"Service": listOf(&o.Services, core, true), "EndpointSlice": listOf(&o.Slices, discovery, true),
		"Node": listOf(&o.Nodes, core, false), "Namespace": listOf(&o.Namespaces, core, false),
		"IPAddressPool": listOf(&o.Pools, ours, false), "L2Domain": listOf(&o.Domains, ours, false),
		"BGPPeer": listOf(&o.Peers, ours, false), "BGPAdvertisement": listOf(&o.Advertisements, ours, false),
		"BFDProfile": listOf(&o.Profiles, ours, false), "Community": listOf(&o.Communities, ours, false),
		"BGPNodeStatus": listOf(&o.NodeStatuses, ours, false), "Lease": listOf(&o.Leases, coordination, true),
		"Pod":              listOf(&o.Pods, core, true),
		"NetworkPolicy":    listOf(&o.Policies, networkingv1.SchemeGroupVersion.String(), true),
		"FRRConfiguration": listOf(&o.FRRConfigurations, frr.GroupVersion().String(), true),
		"FRRNodeState":     listOf(&o.FRRNodes, frr.GroupVersion().String(), false),
		"BGPSessionState":  listOf(&o.FRRSessions, frr.GroupVersion().String(), true),
		"EgressIP":         listOfUnstructured(&o.EgressIPs, convert.EgressIPs().GroupVersion().String()),
	}
}

// object is a pointer to an API object.
type object[T any] interface {
	*T
	metav1.Object
}

func listOf[T any, P object[T]](objects *[]P, apiVersion string, namespaced bool) list {
	index := func(namespace, name string) int {
		return slices.IndexFunc(*objects, func(o P) bool { return o.GetName() == name && o.GetNamespace() == namespace })
	}
	return list{
		apiVersion: apiVersion, namespaced: namespaced, typed: new(T),
		set: func(content map[string]any) error {
			v := P(new(T))
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, v, true); err != nil {
				return err
			}
			if at := index(v.GetNamespace(), v.GetName()); at >= 0 {
				(*objects)[at] = v
			} else {
				*objects = append(*objects, v)
			}
			return nil
		},
		find: func(namespace, name string) (map[string]any, error) {
			at := index(namespace, name)
			if at < 0 {
				return nil, nil
			}
			out, err := runtime.DefaultUnstructuredConverter.ToUnstructured((*objects)[at])
			if err != nil {
				return nil, fmt.Errorf("encode the present object: %w", err)
			}
			return out, nil
		},
		remove: func(namespace, name string) bool {
			at := index(namespace, name)
			if at >= 0 {
				*objects = slices.Delete(slices.Clone(*objects), at, at+1)
			}
			return at >= 0
		},
	}
}

// listOfUnstructured is listOf for a kind without a namespace of which only some fields are known.
func listOfUnstructured(objects *[]*unstructured.Unstructured, apiVersion string) list {
	l := listOf(objects, apiVersion, false)
	l.set = func(content map[string]any) error {
		u := &unstructured.Unstructured{Object: content}
		l.remove("", u.GetName())
		*objects = append(*objects, u)
		return nil
	}
	return l
}
