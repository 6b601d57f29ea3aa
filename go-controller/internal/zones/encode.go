// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Name returns the name of the ServicePlan of a Service.
func Name(k world.Key) string { return k.Namespace + "." + k.Name }

// Encode returns the published form of a plan. Backends keep the slots that they have in the spec published before, if
// there is one.
func Encode(p *plan.Service, before *v1alpha1.ServicePlanSpec) v1alpha1.ServicePlanSpec {
	out := v1alpha1.ServicePlanSpec{Namespace: p.Key.Namespace, Name: p.Key.Name,
		VIPs: []v1alpha1.PlannedVIP{}}
	if p.SessionAffinity {
		out.SessionAffinity = v1alpha1.SessionAffinityClientIP
	}
	if p.ConnectionsMayEnd {
		out.KeepConnections = new(bool)
	}
	for _, v := range p.VIPs {
		out.VIPs = append(out.VIPs, v1alpha1.PlannedVIP{Address: v.Addr.String(), L2Domain: v.Shard.Domain,
			Shard: int32(v.Shard.Index), EgressMAC: v.EgressMAC})
	}
	slots := slotsOf(before)
	for _, l := range p.Listeners {
		published := v1alpha1.PlannedListener{Address: l.VIP.String(), Protocol: string(l.Protocol), Port: int32(l.Port),
			Draining: encodeBackends(l.Draining)}
		published.Backends = rows.Slots(slots[listenerOf(&published)], encodeBackends(l.Backends))
		out.Listeners = append(out.Listeners, published)
	}
	for _, f := range []world.Family{world.IPv4, world.IPv6} {
		ranges, restricted := p.SourceRanges[f]
		if !restricted {
			continue
		}
		admitted := v1alpha1.PlannedSourceRanges{IPFamily: f.String()}
		for _, r := range ranges {
			admitted.CIDRs = append(admitted.CIDRs, r.String())
		}
		out.SourceRanges = append(out.SourceRanges, admitted)
	}
	return out
}

func encodeBackends(backends []plan.Backend) []v1alpha1.PlannedBackend {
	var out []v1alpha1.PlannedBackend
	for _, b := range backends {
		out = append(out, v1alpha1.PlannedBackend{Address: b.Addr.String(), NodeName: b.Node, HostNetwork: b.HostNetwork})
	}
	return out
}

// listener identifies a listener of a plan.
type listener struct {
	address, protocol string
	port              int32
}

func listenerOf(l *v1alpha1.PlannedListener) listener { return listener{l.Address, l.Protocol, l.Port} }

func slotsOf(spec *v1alpha1.ServicePlanSpec) map[listener][]v1alpha1.PlannedBackend {
	slots := map[listener][]v1alpha1.PlannedBackend{}
	if spec != nil {
		for i := range spec.Listeners {
			slots[listenerOf(&spec.Listeners[i])] = spec.Listeners[i].Backends
		}
	}
	return slots
}

// Decode is the inverse of Encode. Backends are in the order of their slots, and one with several slots is repeated.
// An error names the value that can't be parsed.
func Decode(spec *v1alpha1.ServicePlanSpec) (*plan.Service, error) {
	p := &plan.Service{Key: world.Key{Namespace: spec.Namespace, Name: spec.Name},
		SessionAffinity:   spec.SessionAffinity == v1alpha1.SessionAffinityClientIP,
		ConnectionsMayEnd: spec.KeepConnections != nil && !*spec.KeepConnections}
	for _, v := range spec.VIPs {
		addr, err := netip.ParseAddr(v.Address)
		if err != nil {
			return nil, fmt.Errorf("spec.vips: address %q: %w", v.Address, err)
		}
		p.VIPs = append(p.VIPs, plan.VIP{Addr: addr, Shard: world.ShardID{Domain: v.L2Domain, Index: int(v.Shard)},
			EgressMAC: v.EgressMAC})
	}
	slices.SortFunc(p.VIPs, func(a, b plan.VIP) int { return a.Addr.Compare(b.Addr) })
	for _, l := range spec.Listeners {
		addr, err := netip.ParseAddr(l.Address)
		if err != nil {
			return nil, fmt.Errorf("spec.listeners: address %q: %w", l.Address, err)
		}
		decoded := plan.Listener{VIP: addr, Protocol: world.Protocol(l.Protocol), Port: uint16(l.Port)}
		if decoded.Backends, err = decodeBackends(l.Backends); err != nil {
			return nil, err
		}
		if decoded.Draining, err = decodeBackends(l.Draining); err != nil {
			return nil, err
		}
		p.Listeners = append(p.Listeners, decoded)
	}
	slices.SortStableFunc(p.Listeners, func(a, b plan.Listener) int { return a.VIP.Compare(b.VIP) })
	for _, s := range spec.SourceRanges {
		if p.SourceRanges == nil {
			p.SourceRanges = map[world.Family][]netip.Prefix{}
		}
		f := world.IPv4
		if s.IPFamily == world.IPv6.String() {
			f = world.IPv6
		}
		p.SourceRanges[f] = nil
		for _, text := range s.CIDRs {
			r, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("spec.sourceRanges: cidr %q: %w", text, err)
			}
			p.SourceRanges[f] = append(p.SourceRanges[f], r)
		}
	}
	return p, nil
}

func decodeBackends(backends []v1alpha1.PlannedBackend) ([]plan.Backend, error) {
	var out []plan.Backend
	for _, b := range backends {
		addr, err := netip.ParseAddrPort(b.Address)
		if err != nil {
			return nil, fmt.Errorf("spec.listeners: backend %q: %w", b.Address, err)
		}
		out = append(out, plan.Backend{Addr: addr, Node: b.NodeName, HostNetwork: b.HostNetwork})
	}
	return out, nil
}
