// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Set decodes YAML documents. Each object replaces the one of the same kind, namespace and name, or is added. It
// returns what was set, in the form KIND/NAME. Unknown kinds and fields are errors.
func (o *Objects) Set(documents []byte) ([]string, error) {
	return o.each(documents, func(_ list, _ metav1.PartialObjectMetadata, doc []byte) ([]byte, error) { return doc, nil })
}

// Edit is like Set for manifests of users. The objects keep what the API server and controllers write: status, UID and
// time of creation. New objects are created at now. As with kubectl, kinds without a namespace ignore that of a
// manifest.
func (o *Objects) Edit(documents []byte, now time.Time) ([]string, error) {
	return o.each(documents, func(l list, is metav1.PartialObjectMetadata, doc []byte) ([]byte, error) {
		var next map[string]any
		if err := yaml.Unmarshal(doc, &next); err != nil {
			return nil, err
		}
		metadata, _ := next["metadata"].(map[string]any)
		if metadata == nil {
			return nil, fmt.Errorf("metadata.name: missing")
		}
		if !l.namespaced {
			is.Namespace = ""
			delete(metadata, "namespace")
		} else if is.Namespace == "" {
			return nil, fmt.Errorf("metadata.namespace: missing")
		}
		delete(next, "status")
		metadata["creationTimestamp"] = now.UTC().Format(time.RFC3339)
		old, err := l.find(is.Namespace, is.Name)
		if err != nil {
			return nil, err
		}
		if old != nil {
			if was, ok := old["metadata"].(map[string]any); ok {
				metadata["creationTimestamp"], metadata["uid"] = was["creationTimestamp"], was["uid"]
			}
			next["status"] = old["status"]
		}
		return yaml.Marshal(next)
	})
}

// Delete removes an object without a namespace. It returns false if there is none.
func (o *Objects) Delete(kind, name string) bool {
	l, ok := o.lists()[kind]
	return ok && l.remove(name)
}

// each sets the objects in YAML documents after change.
func (o *Objects) each(documents []byte,
	change func(list, metav1.PartialObjectMetadata, []byte) ([]byte, error)) ([]string, error) {
	lists := o.lists()
	var set []string
	for i, doc := range bytes.Split(append([]byte("\n"), documents...), []byte("\n---\n")) {
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		var is metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(doc, &is); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		l, ok := lists[is.Kind]
		if !ok {
			return nil, fmt.Errorf("document %d: kind %q is not supported", i+1, is.Kind)
		}
		if is.APIVersion != l.apiVersion {
			return nil, fmt.Errorf("document %d: %s %q: apiVersion %q: want %q", i+1, is.Kind, is.Name, is.APIVersion,
				l.apiVersion)
		}
		doc, err := change(l, is, doc)
		if err == nil {
			err = l.set(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %s %q: %w", i+1, is.Kind, is.Name, err)
		}
		set = append(set, is.Kind+"/"+is.Name)
	}
	return set, nil
}

// list is a list of objects of one kind.
type list struct {
	apiVersion string
	namespaced bool
	set        func(doc []byte) error
	// find returns the object as JSON would have it; nil if there is none.
	find   func(namespace, name string) (map[string]any, error)
	remove func(name string) bool
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
		"Pod": listOf(&o.Pods, core, true),
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
		apiVersion: apiVersion, namespaced: namespaced,
		set: func(doc []byte) error {
			v := P(new(T))
			if err := yaml.UnmarshalStrict(doc, v); err != nil {
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
			text, err := json.Marshal((*objects)[at])
			if err != nil {
				return nil, fmt.Errorf("encode the present object: %w", err)
			}
			var out map[string]any
			err = json.Unmarshal(text, &out)
			return out, err
		},
		remove: func(name string) bool {
			at := index("", name)
			if at >= 0 {
				*objects = slices.Delete(slices.Clone(*objects), at, at+1)
			}
			return at >= 0
		},
	}
}
