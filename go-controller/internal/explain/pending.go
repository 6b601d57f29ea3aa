// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// writeTime is how long a controller may need to write the first status of a Service once it no longer waits.
const writeTime = 5 * time.Second

// mayAwaitOVN reports whether a Service without conditions may have none because the controller withholds its new
// address until OVN has it.
func (p *path) mayAwaitOVN() bool {
	return len(p.objects.Domains) > 0 && !p.world.Cluster.OpenShiftSDN && ControllerSilent(p.objects, p.Now) == "" &&
		p.Now.Sub(p.object.CreationTimestamp.Time) < world.ProgramWait+writeTime
}

// awaitsOVN returns the link of such a Service. Usually the wait takes a moment.
func (p *path) awaitsOVN() Link {
	link := Link{Name: LinkService, Object: p.Service.String(), State: Unknown, Reason: v1alpha1.ReasonProgramming,
		Message: "the Service is " + duration.HumanDuration(max(p.Now.Sub(p.object.CreationTimestamp.Time), 0)) +
			" old, and has no conditions yet: a new address is in the status once OVN has it, or after " +
			world.ProgramWait.String()}
	if p.hasAgents() {
		link.Message += "; if that lasts, the zone of its gateway may not apply it"
		link.Command = p.ownPods("")
		return link
	}
	_, command, s := p.mendChange("", true)
	if link.Command = command; s != nil {
		link.Reason, link.Message = ReasonNorthdStopped, link.Message+"; "+s.String()
	} else {
		link.Message += "; if that lasts, ovn-northd may not have translated its rows"
	}
	return link
}
