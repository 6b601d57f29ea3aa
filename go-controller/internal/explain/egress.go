// SPDX-License-Identifier: Apache-2.0

package explain

import "github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"

// addEgress adds what is wrong with connections that the pods open from the address (EgressService of OVN-Kubernetes).
// Clients reach the Service all the same.
func (p *path) addEgress() {
	if c := p.announced; c != nil && c.Reason == v1alpha1.ReasonEgressUnserved {
		p.add(Link{Name: LinkEgress, Object: p.object.Name, State: Warning, Reason: c.Reason, Message: c.Message,
			Command: p.kubectl("edit egressservices.k8s.ovn.org %s", p.object.Name)})
	}
}
