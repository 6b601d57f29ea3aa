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

// slicesOf returns the endpoints of a Service, ordered by the names of their EndpointSlices.
func (f *Facts) slicesOf(key world.Key) []*world.Slice {
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
	relevant := false
	none := world.Key{}
	if old != nil && old.service != none {
		all := f.endpoints[old.service]
		if at, found := slices.BinarySearchFunc(all, old, byName); found {
			all = slices.Delete(all, at, at+1)
		}
		if f.endpoints[old.service] = all; len(all) == 0 {
			delete(f.endpoints, old.service)
		}
		relevant = f.touchEndpoints(old.service)
	}
	if now != nil && now.service != none {
		all := f.endpoints[now.service]
		at, _ := slices.BinarySearchFunc(all, now, byName)
		if at > 0 {
			now.world = sharingPorts(all[at-1].world, now.world)
		}
		f.endpoints[now.service] = slices.Insert(all, at, now)
		relevant = f.touchEndpoints(now.service) || relevant
	}
	f.mu.Unlock()
	if relevant {
		f.hooks.Wake()
	}
}

func byName(a, b *endpoints) int { return cmp.Compare(a.Name, b.Name) }

// sharingPorts returns a slice that has the ports of another one, if they are equal: a Service of thousands of ports
// may have thousands of slices.
func sharingPorts(of, s *world.Slice) *world.Slice {
	if of == nil || s == nil || !slices.Equal(of.Ports, s.Ports) {
		return s
	}
	shared := *s
	shared.Ports = of.Ports
	return &shared
}

// touchEndpoints records that the endpoints of a Service have changed. It returns false if the Service is not ours.
func (f *Facts) touchEndpoints(key world.Key) bool {
	if s := f.services[key]; s == nil || s.world == nil {
		return false
	}
	f.staleEndpoints[key] = true
	return true
}

// readEndpoints gives the Services their new endpoints: once for all changes, because a tenant writes many slices, and
// without a new conversion, because a Service may have megabytes.
func (f *Facts) readEndpoints() {
	for key := range f.staleEndpoints {
		if s := f.services[key]; s != nil && s.world != nil {
			was, is := s.world, *s.world
			is.Slices = f.slicesOf(key)
			s.world = &is
			f.changes.add(key, was, s.world, false)
		}
	}
	clear(f.staleEndpoints)
}
