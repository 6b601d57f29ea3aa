// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// minKernels is the number of gateways that survive the loss of one with OpenShift SDN. There the controller detects
// the loss, and no gateway depends on another.
const minKernels = 2

// sdnNotAttachedReason returns why a node of OpenShift SDN is not attached to the segment, or no reason if it is. A
// node with unknown facts is excluded: it would not act as a gateway.
func (d *Domain) sdnNotAttachedReason(n *world.Node) (Reason, string) {
	if n.Kernel == nil || !n.Kernel.Agent.IsValid() {
		return ReasonNoAgent, fmt.Sprintf("no agent runs on node %q (ovnkube-slb node --enable-sdn)", n.Name)
	}
	if d.KernelInterface(n) == "" {
		return ReasonNotAttached, fmt.Sprintf("node %q has no address in a subnet of the segment; its interfaces are %s",
			n.Name, interfacesText(n.Kernel.Interfaces))
	}
	return "", ""
}

// KernelInterface returns the name of the interface by which a node of OpenShift SDN is attached to the segment, or an
// empty string. The interface has an address in one of the subnets. Of several, it is the one with the name of the
// physical network, or else the first by name.
func (d *Domain) KernelInterface(n *world.Node) string {
	if n.Kernel == nil {
		return ""
	}
	attached := func(name string) bool {
		return slices.ContainsFunc(n.Kernel.Interfaces[name], func(p netip.Prefix) bool {
			_, ok := d.subnet(p.Addr())
			return ok
		})
	}
	if attached(d.Spec.PhysicalNetwork) {
		return d.Spec.PhysicalNetwork
	}
	names := slices.Sorted(maps.Keys(n.Kernel.Interfaces))
	if i := slices.IndexFunc(names, attached); i >= 0 {
		return names[i]
	}
	return ""
}

// lacksFamily reports whether a node of OpenShift SDN has, on its interface on the segment, no address in the subnets
// of a family. For example, the kernel removes all IPv6 addresses of an interface whose MTU falls below 1280.
func (d *Domain) lacksFamily(n *world.Node) bool {
	if n.Kernel == nil {
		return false
	}
	has := map[world.Family]bool{}
	for _, p := range n.Kernel.Interfaces[d.KernelInterface(n)] {
		if _, ok := d.subnet(p.Addr()); ok {
			has[world.FamilyOf(p.Addr())] = true
		}
	}
	return slices.ContainsFunc(d.Spec.Subnets, func(s world.Subnet) bool {
		return !has[world.FamilyOf(s.Prefix.Addr())]
	})
}

// partialMembers returns the names of the members that lack a family, or an empty string.
func (d *Domain) partialMembers(members []*world.Node) string {
	var names []string
	for _, n := range members {
		if d.lacksFamily(n) {
			names = append(names, n.Name)
		}
	}
	return some(names)
}

func interfacesText(interfaces map[string][]netip.Prefix) string {
	if len(interfaces) == 0 {
		return "none"
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(interfaces)) {
		var addrs []string
		for _, p := range interfaces[name] {
			addrs = append(addrs, p.String())
		}
		texts = append(texts, name+" ("+world.Some(addrs, maxNamed)+")")
	}
	return world.Some(texts, maxNamed)
}
