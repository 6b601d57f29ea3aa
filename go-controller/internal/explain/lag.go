// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// lags reports whether a condition Announced shows that zones of endpoints have not applied the Service: only the
// controller knows which version of it they have.
func lags(announced *metav1.Condition) bool {
	return announced != nil && announced.Reason == v1alpha1.ReasonZoneLagging
}

// addLagging records that zones of endpoints have not applied the Service. A zone that says why has its own remedy.
func (p *path) addLagging(link *Link, nodes map[string]bool) {
	if !lags(p.announced) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if a := p.agent(name); a != nil && a.Unwritable != "" {
			link.State = Warning
			link.Message += fmt.Sprintf("; connections to those on node %s may get no reply, because it has not applied the "+
				"latest change: %s", name, a.Unwritable)
			p.addUnchangeable(link, name, a.Northd)
			return
		}
	}
	if link.State == OK {
		link.State, link.Reason, link.Command = Warning, v1alpha1.ReasonZoneLagging, p.ownPods("")
		link.Message += "; " + p.announced.Message
	}
}

// agent returns what the agent of a node reports, or nil.
func (p *path) agent(node string) *world.ZoneAgent {
	if n := objects.Named(p.objects.Nodes, node); n != nil {
		return p.objects.Node(n, p.Now).Agent
	}
	return nil
}
