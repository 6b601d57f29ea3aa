// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// egressState is why replies do not arrive to connections that the pods of a Service open from one of its addresses on
// a node (EgressService of OVN-Kubernetes). The zero value means that they do, or that there are none.
type egressState struct {
	// unassigned is set if OVN-Kubernetes has selected no node: pods use the addresses of their own nodes.
	unassigned bool
	node       string
	// in is the address, its L2Domain and the cause.
	in      place.Placement
	problem decide.EgressProblem
	// other is the Service whose node gets the replies instead, otherNode.
	other     world.Key
	otherNode string
}

// egressOf returns the state of a Service: that of its first address at layer 2 that has a problem.
func (v *Builder) egressOf(key world.Key) egressState {
	node, has := v.World.EgressHosts[key]
	if node == "" {
		return egressState{unassigned: has}
	}
	for _, placement := range v.Placements.Services[key] {
		e, ok := v.Egress[placement.Addr]
		switch {
		case placement.Reason != "" || !ok:
		case e.Node != node:
			return egressState{node: node, in: placement, other: e.Service, otherNode: e.Node}
		case e.Problem != 0:
			return egressState{node: node, in: placement, problem: e.Problem}
		}
	}
	return egressState{}
}

// text returns the end of a message that reports the state, with a remedy.
func (s *egressState) text(key world.Key) string {
	switch {
	case s.unassigned:
		return "; the pods open connections from the addresses of their nodes, because OVN-Kubernetes has selected no node " +
			"for the EgressService (status.host): spec.nodeSelector must match a Node that is ready"
	case s.node == "":
		return ""
	}
	why, remedy := "", "limit spec.nodeSelector of the EgressService to nodes whose own gateway (br-ex) is on the "+
		"segment, if there are any"
	switch s.problem {
	case decide.EgressNodeUnknown:
		why = "the node does not exist"
	case decide.EgressOffSegment:
		why = fmt.Sprintf("no address of the node's gateway (k8s.ovn.org/l3-gateway-config) is in the subnet of L2Domain %s "+
			"that contains %s", s.in.Shard.Domain, s.in.Addr)
	case decide.EgressNoMAC:
		why = "the annotation k8s.ovn.org/l3-gateway-config of the node has no MAC address of its own"
	case decide.EgressOtherSubnet:
		why = fmt.Sprintf("%s and the address of shard %d of L2Domain %s are in different subnets", s.in.Addr,
			s.in.Shard.Index, s.in.Shard.Domain)
		remedy = "have an L2Domain for each subnet"
	default:
		other := s.other.String()
		if s.other.Namespace != key.Namespace { // who may see a Service may not see those of other namespaces
			other = "a Service of another namespace"
		}
		why = fmt.Sprintf("they go to node %s, that of the EgressService of %s, which has %s as well", s.otherNode, other,
			s.in.Addr)
		remedy = "give both EgressServices a spec.nodeSelector for the same node"
	}
	return fmt.Sprintf("; replies to connections that the pods open from this address on node %s (EgressService, "+
		"sourceIPBy: LoadBalancerIP) do not arrive by layer 2, because %s: %s, or advertise the address by BGP, from nodes "+
		"with the label egress-service.k8s.ovn.org/%s-%s", s.node, why, remedy, key.Namespace, key.Name)
}
