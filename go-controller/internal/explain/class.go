// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// labelManagedBy names the tool that an object is managed by, as recommended by Kubernetes.
const labelManagedBy = "app.kubernetes.io/managed-by"

// mendClass returns what to do about a Service with a class that is not served. What has created the Service would
// revert an edit.
func (p *path) mendClass() string {
	const list = "# or let ovnkube-slb serve the class: docs/tasks/segment.md, Further classes"
	creator := p.object.Labels[labelManagedBy]
	if of := metav1.GetControllerOf(p.object); of != nil {
		creator = cmp.Or(creator, of.Kind+" "+of.Name)
	}
	if creator != "" {
		return printable.Command("set class %s in %s, which manages the Service   "+list, v1alpha1.LoadBalancerClass, creator)
	}
	return p.kubectl("get service %s -o yaml", p.object.Name) + " | sed 's,loadBalancerClass: .*,loadBalancerClass: " +
		v1alpha1.LoadBalancerClass + ",' | kubectl replace --force -f -   " + list
}
