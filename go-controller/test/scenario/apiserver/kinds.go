// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of object that a Server has.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its name in paths, as in "services".
	Resource   string
	Namespaced bool
	// HasStatus reports whether the kind has the subresource status.
	HasStatus bool
	// countsGenerations reports whether changes of the spec raise metadata.generation.
	countsGenerations bool
	admission         admission
}

func (k *Kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// admission decodes, defaults and validates the objects of a kind. It changes them in place.
type admission interface {
	// decode prunes what the kind does not have. If strict is set, it returns an error for that.
	decode(obj map[string]any, strict bool) error
	// admit defaults and validates an object. old is nil for a new one. status says that its status is written.
	admit(s *Server, old, obj map[string]any, status bool) error
}

// Kinds are the kinds that all servers of a test binary have. They are read only once, because it takes time to compile
// CEL rules.
type Kinds []*Kind

// LoadKinds returns the kinds of Kubernetes that the project uses, and those of the CustomResourceDefinitions in a
// directory.
func LoadKinds(crds string) (Kinds, error) {
	kinds := builtIn()
	files, err := filepath.Glob(filepath.Join(crds, "*_*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinitions in %s (%w)", crds, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
		}
		kind, err := customKind(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func builtIn() Kinds {
	kind := func(group schema.GroupVersion, name, resource string, empty func() runtime.Object, namespaced bool) *Kind {
		return &Kind{GroupVersionKind: group.WithKind(name), Resource: resource, Namespaced: namespaced,
			admission: typed{empty}}
	}
	core := corev1.SchemeGroupVersion
	services := kind(core, "Service", "services", func() runtime.Object { return &corev1.Service{} }, true)
	services.HasStatus, services.admission = true, serviceAdmission{typed{func() runtime.Object {
		return &corev1.Service{}
	}}}
	nodes := kind(core, "Node", "nodes", func() runtime.Object { return &corev1.Node{} }, false)
	nodes.HasStatus = true
	slices := kind(discoveryv1.SchemeGroupVersion, "EndpointSlice", "endpointslices",
		func() runtime.Object { return &discoveryv1.EndpointSlice{} }, true)
	slices.countsGenerations = true
	return Kinds{
		services, nodes, slices,
		kind(core, "Namespace", "namespaces", func() runtime.Object { return &corev1.Namespace{} }, false),
		kind(core, "Secret", "secrets", func() runtime.Object { return &corev1.Secret{} }, true),
		kind(core, "ConfigMap", "configmaps", func() runtime.Object { return &corev1.ConfigMap{} }, true),
		kind(core, "Pod", "pods", func() runtime.Object { return &corev1.Pod{} }, true),
		kind(core, "Event", "events", func() runtime.Object { return &corev1.Event{} }, true),
		kind(coordinationv1.SchemeGroupVersion, "Lease", "leases",
			func() runtime.Object { return &coordinationv1.Lease{} }, true),
	}
}

// OpenShiftKinds returns the kinds of OpenShift that the project reads where they exist. Their objects are not
// validated.
func OpenShiftKinds() Kinds {
	var kinds Kinds
	for _, group := range []string{"config.openshift.io", "operator.openshift.io"} {
		kinds = append(kinds, &Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Network"},
			Resource: "networks", countsGenerations: true, admission: anything{}})
	}
	return kinds
}

// RouteAdvertisements returns one of the kinds of OVN-Kubernetes that the project reads where they exist. Its objects
// are not validated.
func RouteAdvertisements() Kinds {
	return Kinds{ovnKubernetesKind("RouteAdvertisements", "routeadvertisements")}
}

// EgressServices returns another such kind.
func EgressServices() Kinds {
	k := ovnKubernetesKind("EgressService", "egressservices")
	k.Namespaced, k.HasStatus = true, true
	return Kinds{k}
}

// EgressIPs returns another such kind.
func EgressIPs() Kinds { return Kinds{ovnKubernetesKind("EgressIP", "egressips")} }

func ovnKubernetesKind(name, resource string) *Kind {
	return &Kind{GroupVersionKind: schema.GroupVersionKind{Group: "k8s.ovn.org", Version: "v1", Kind: name},
		Resource: resource, countsGenerations: true, admission: anything{}}
}

// FRRKinds returns the kinds of frr-k8s. Their objects are not validated, but Refuse stands for its webhook.
func FRRKinds() Kinds {
	kind := func(name, resource string, namespaced bool) *Kind {
		return &Kind{GroupVersionKind: schema.GroupVersionKind{Group: "frrk8s.metallb.io", Version: "v1beta1", Kind: name},
			Resource: resource, Namespaced: namespaced, HasStatus: true, countsGenerations: true, admission: refusable{resource}}
	}
	return Kinds{kind("FRRConfiguration", "frrconfigurations", true), kind("FRRNodeState", "frrnodestates", false),
		kind("BGPSessionState", "bgpsessionstates", true)}
}

// refusable admits any object unless a webhook refuses it.
type refusable struct{ resource string }

func (refusable) decode(map[string]any, bool) error { return nil }

func (r refusable) admit(s *Server, _, _ map[string]any, _ bool) error {
	return s.refusal(schema.GroupResource{Group: "frrk8s.metallb.io", Resource: r.resource})
}

// byResource returns the kind with a resource name, or nil.
func (k Kinds) byResource(group, version, resource string) *Kind {
	i := slices.IndexFunc(k, func(k *Kind) bool {
		return k.Group == group && k.Version == version && k.Resource == resource
	})
	if i < 0 {
		return nil
	}
	return k[i]
}

// anything admits any object.
type anything struct{}

func (anything) decode(map[string]any, bool) error                         { return nil }
func (anything) admit(*Server, map[string]any, map[string]any, bool) error { return nil }
