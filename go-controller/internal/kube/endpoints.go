// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// endpoints is what is stored of an EndpointSlice. The objects themselves would take most of the memory in a large
// cluster.
type endpoints struct {
	metav1.ObjectMeta // name, namespace and version only
	// service is the Service of the endpoints; the zero Key if there is none.
	service world.Key
	// world is nil for endpoints that no proxy serves.
	world *world.Slice
}

// GetObjectKind implements runtime.Object, as informers require.
func (e *endpoints) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. The copy shares the slice in world, which is immutable.
func (e *endpoints) DeepCopyObject() runtime.Object {
	out := *e
	e.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func keepEndpoints(s *discoveryv1.EndpointSlice) *endpoints {
	e := &endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name,
		ResourceVersion: s.ResourceVersion}}
	if owner, ok := convert.SliceOwner(s); ok {
		e.service = owner
	}
	e.world, _ = convert.Slice(s)
	return e
}

// endpointsOf returns the endpoints of a Service, ordered by the names of their EndpointSlices.
func (f *Facts) endpointsOf(key world.Key) []*world.Slice {
	all := f.endpoints[key]
	out := make([]*world.Slice, 0, len(all))
	for _, e := range all {
		if e.world != nil {
			out = append(out, e.world)
		}
	}
	return out
}

func (f *Facts) setEndpoints(old, now *endpoints) {
	f.mu.Lock()
	touched := map[world.Key]struct{}{}
	none := world.Key{}
	if old != nil && old.service != none {
		touched[old.service] = struct{}{}
		rest := slices.DeleteFunc(f.endpoints[old.service], func(e *endpoints) bool { return e.Name == old.Name })
		if f.endpoints[old.service] = rest; len(rest) == 0 {
			delete(f.endpoints, old.service)
		}
	}
	if now != nil && now.service != none {
		touched[now.service] = struct{}{}
		all := f.endpoints[now.service]
		at, _ := slices.BinarySearchFunc(all, now, func(a, b *endpoints) int { return cmp.Compare(a.Name, b.Name) })
		f.endpoints[now.service] = slices.Insert(all, at, now)
	}
	relevant := false
	for key := range touched {
		if s := f.services[key]; s != nil && s.world != nil {
			// A tenant writes many slices of a Service of megabytes, which is not converted again for each.
			was, is := s.world, *s.world
			is.Slices = f.endpointsOf(key)
			s.world = &is
			f.changes.add(key, was, s.world, false)
			relevant = true
		}
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}
