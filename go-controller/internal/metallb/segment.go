// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// networkName is the rule of the CRD for physicalNetwork.
const networkName = `^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`

// Segment is a physical network, as an L2Domain describes it. MetalLB does not know it: its speakers answer on the
// interfaces of the nodes.
type Segment struct {
	PhysicalNetwork string
	VLAN            int32
	Subnets         []v1alpha1.Subnet
}

// ParseSegment parses NETWORK[/VLAN]=CIDR[@GATEWAY][,CIDR[@GATEWAY]...], for example
// physnet/100=10.50.0.0/24@10.50.0.1,fd00:50::/64@fd00:50::1.
func ParseSegment(text string) (Segment, error) {
	var s Segment
	where, subnets, ok := strings.Cut(text, "=")
	network, vlan, tagged := strings.Cut(where, "/")
	if s.PhysicalNetwork = network; !ok || !regexp.MustCompile(networkName).MatchString(network) {
		return s, fmt.Errorf("%q is not of the form NETWORK[/VLAN]=CIDR[@GATEWAY][,CIDR[@GATEWAY]]", text)
	}
	if tagged {
		n, err := strconv.ParseInt(vlan, 10, 32)
		if err != nil || n < 1 {
			return s, fmt.Errorf("%q: VLAN %q is not between 1 and 4094", text, vlan)
		}
		s.VLAN = int32(n)
	}
	for subnet := range strings.SplitSeq(subnets, ",") {
		cidr, gateway, _ := strings.Cut(subnet, "@")
		s.Subnets = append(s.Subnets, v1alpha1.Subnet{CIDR: cidr, Gateway: v1alpha1.IPAddress(gateway)})
	}
	if errs := s.domain().Validate(); len(errs) > 0 {
		return s, fmt.Errorf("%q: %w", text, errs.ToAggregate())
	}
	return s, nil
}

// Name is the name of the L2Domain of the segment.
func (s *Segment) Name() string {
	name := objectName(s.PhysicalNetwork)
	if s.VLAN != 0 {
		name += fmt.Sprintf("-vlan%d", s.VLAN)
	}
	return name
}

func (s *Segment) domain() *v1alpha1.L2Domain {
	d := &v1alpha1.L2Domain{TypeMeta: typeMeta(kindL2Domain)}
	d.Name = s.Name()
	d.Spec.PhysicalNetwork, d.Spec.VLAN, d.Spec.Subnets = s.PhysicalNetwork, s.VLAN, s.Subnets
	return d
}

// prefixes returns the subnets of a domain.
func prefixes(subnets []v1alpha1.Subnet) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range subnets {
		if p, err := netip.ParsePrefix(s.CIDR); err == nil {
			out = append(out, p)
		}
	}
	return out
}
