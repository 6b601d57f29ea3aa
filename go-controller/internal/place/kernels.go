// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// minKernels is how many gateways survive the loss of one with OpenShift SDN, where it is the
// controller that notices it and no gateway has to hear another.
const minKernels = 2

// outside says why a node of OpenShift SDN has no way to the segment, nothing if it has. What is
// not known of it leaves it out: nobody there would obey.
func (d *Domain) outside(n *world.Node) (Reason, string) {
	if n.Kernel == nil || !n.Kernel.Agent.IsValid() {
		return ReasonNoAgent, fmt.Sprintf("no agent runs on node %q (ovnkube-slb node --enable-sdn)", n.Name)
	}
	if d.Interface(n) == "" {
		return ReasonNotAttached, fmt.Sprintf("node %q has no address in a subnet of the segment; its interfaces are %s", n.Name, interfacesText(n.Kernel.Interfaces))
	}
	return "", ""
}

// Interface is the one by which a node of OpenShift SDN is attached to the segment, empty for
// none: it has an address in one of the subnets. Of several it is the one that has the physical
// network's name, or else the first by name.
func (d *Domain) Interface(n *world.Node) string {
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
		texts = append(texts, name+" ("+strings.Join(addrs, ", ")+")")
	}
	return strings.Join(texts, ", ")
}
