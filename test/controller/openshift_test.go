// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const openShiftNetwork = `
apiVersion: config.openshift.io/v1
kind: Network
metadata: {name: cluster}
spec: {externalIP: {autoAssignCIDRs: [192.0.2.0/24]}}
`

// openShiftAssigns lets OpenShift itself assign addresses for a while.
func openShiftAssigns(t *testing.T, c *cluster) {
	o := databases(t)
	c.openShift(t)
	p := c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	had := c.addresses(t, "web")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonNoActiveGateway)
	o.claim(t, "chassis-2")
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced)

	c.apply(t, openShiftNetwork)
	c.event(t, "lan", v1alpha1.EventAllocationSuspended, "autoAssignCIDRs", "192.0.2.0/24")
	// Networks and Services are watched independently.
	suspended := func() {
		c.kubectl(t, "wait", "ippool/lan",
			"--for=jsonpath={.status.conditions[?(@.type=='Ready')].reason}="+v1alpha1.ReasonOpenShiftAssigns)
	}
	suspended()
	c.service(t, "late")
	waits := c.condition(t, "late", v1alpha1.ConditionAllocated, v1alpha1.ReasonOpenShiftAssigns)
	if waits.Status != metav1.ConditionFalse || !strings.Contains(waits.Message, "autoAssignCIDRs") {
		t.Errorf("late: %+v", waits)
	}

	// Assigned addresses are kept, even by a controller that starts in this state.
	p.stop()
	c.service(t, "later")
	c.controller(t, o)
	c.condition(t, "later", v1alpha1.ConditionAllocated, v1alpha1.ReasonOpenShiftAssigns)
	c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonAllocated)
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonAnnounced)
	if got := c.addresses(t, "web"); !slices.Equal(got, had) || len(o.loadBalancers(t)) != 1 {
		t.Errorf("web has %v and OVN %v, want the address %v that it had", got, o.loadBalancers(t), had)
	}
	if n := c.events(t, "lan", v1alpha1.EventAllocationSuspended); n != 1 {
		t.Errorf("%d events about the pool, want one", n)
	}

	c.kubectl(t, "patch", configKind, "cluster", "--type=merge", `-p={"spec":{"externalIP":{"autoAssignCIDRs":[]}}}`)
	c.addresses(t, "late")
	c.addresses(t, "later")
	c.event(t, "lan", v1alpha1.EventAllocationResumed)

	// Deleting the CRD also removes its setting.
	c.kubectl(t, "patch", configKind, "cluster", "--type=merge",
		`-p={"spec":{"externalIP":{"autoAssignCIDRs":["192.0.2.0/24"]}}}`)
	suspended()
	c.service(t, "last")
	c.condition(t, "last", v1alpha1.ConditionAllocated, v1alpha1.ReasonOpenShiftAssigns)
	c.kubectl(t, "delete", "crd", configKind)
	c.addresses(t, "last")
}
