// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"math"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// SliceOwner returns the Service that an EndpointSlice belongs to; false if there is none.
func SliceOwner(s *discoveryv1.EndpointSlice) (world.Key, bool) {
	name := s.Labels[discoveryv1.LabelServiceName]
	return world.Key{Namespace: s.Namespace, Name: name}, name != ""
}

// Slice converts an EndpointSlice. It returns false for EndpointSlices of host names, which no proxy serves.
func Slice(s *discoveryv1.EndpointSlice) (*world.Slice, bool) {
	out := &world.Slice{Family: world.IPv4}
	switch s.AddressType {
	case discoveryv1.AddressTypeIPv4:
	case discoveryv1.AddressTypeIPv6:
		out.Family = world.IPv6
	case discoveryv1.AddressTypeFQDN:
		return nil, false
	default:
		return nil, false
	}
	out.Endpoints = make([]world.Endpoint, 0, len(s.Endpoints))
	for i := range s.Endpoints {
		if e, ok := endpoint(&s.Endpoints[i]); ok {
			out.Endpoints = append(out.Endpoints, e)
		}
	}
	if len(out.Endpoints) == 0 {
		return out, true // its ports, of which there may be thousands, lead nowhere
	}
	for _, p := range s.Ports {
		// A port without a number means "all ports" and is not defined for Services. The API server does not check numbers.
		if p.Port == nil || *p.Port < 1 || *p.Port > math.MaxUint16 {
			continue
		}
		port := world.Port{Protocol: world.TCP, Port: uint16(*p.Port)}
		if p.Name != nil {
			port.Name = intern(*p.Name)
		}
		if p.Protocol != nil {
			port.Protocol = world.Protocol(cmp.Or(*p.Protocol, corev1.ProtocolTCP))
		}
		out.Ports = append(out.Ports, port)
	}
	return out, true
}

// endpoint uses only the first address: the API does not define a meaning for the others (discovery/v1,
// Endpoint.Addresses). Absent conditions have the defaults of KEP-1672.
func endpoint(e *discoveryv1.Endpoint) (world.Endpoint, bool) {
	if len(e.Addresses) == 0 {
		return world.Endpoint{}, false
	}
	addr, ok := parseAddr(e.Addresses[0])
	if !ok {
		return world.Endpoint{}, false
	}
	out := world.Endpoint{Addr: addr, Ready: valueOr(e.Conditions.Ready, true)}
	out.Serving = valueOr(e.Conditions.Serving, out.Ready)
	out.Terminating = valueOr(e.Conditions.Terminating, false)
	if e.NodeName != nil {
		out.Node = intern(*e.NodeName)
	}
	return out, true
}

// intern returns an interned copy of a string, so that it is stored once regardless of the number of endpoints.
func intern(s string) string { return unique.Make(s).Value() }

func valueOr(value *bool, unknown bool) bool {
	if value == nil {
		return unknown
	}
	return *value
}

// Slices converts all EndpointSlices of a Service, in the order of their names.
func Slices(in []*discoveryv1.EndpointSlice) []*world.Slice {
	in = slices.SortedFunc(slices.Values(in), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(a.Name, b.Name)
	})
	var out []*world.Slice
	for _, s := range in {
		if slice, ok := Slice(s); ok {
			out = append(out, slice)
		}
	}
	return out
}
