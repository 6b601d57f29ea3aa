// SPDX-License-Identifier: Apache-2.0

package controller

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

// openShiftKinds has the relevant parts of the two Network kinds of OpenShift.
//
//go:embed testdata/openshift-kinds.yaml
var openShiftKinds string

const (
	operatorKind = "networks.operator.openshift.io"
	configKind   = "networks.config.openshift.io"
)

const networkOperator = `
apiVersion: operator.openshift.io/v1
kind: Network
metadata: {name: cluster}
spec:
  clusterNetwork: [{cidr: 10.244.0.0/16, hostPrefix: 24}]
  serviceNetwork: [10.96.0.0/16]
  defaultNetwork: {type: OVNKubernetes, ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 10.50.0.100/30}}}
`

// openShift serves OpenShift's kinds until the end of the test.
func (c *cluster) openShift(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { c.kubectl(t, "delete", "--ignore-not-found", "crd", configKind, operatorKind) })
	c.apply(t, openShiftKinds)
	c.established(t, "crd/"+configKind, "crd/"+operatorKind)
}

// mode annotates the operator's object. An empty value removes the annotation.
func (c *cluster) mode(t *testing.T, value string, more ...string) {
	t.Helper()
	annotation := v1alpha1.AnnotationMode + "=" + value
	if value == "" {
		annotation = v1alpha1.AnnotationMode + "-"
	}
	c.kubectl(t, append([]string{"annotate", "--overwrite", operatorKind, "cluster", annotation}, more...)...)
}

// gauge returns the values of a gauge of the process.
func (p *process) gauge(t *testing.T, name string) string {
	t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				values = append(values, fmt.Sprint(m.GetGauge().GetValue()))
			}
		}
	}
	return strings.Join(values, " ")
}

// operatorSwitches disables and enables service load balancers through the Network object of OpenShift's operator.
func operatorSwitches(t *testing.T, c *cluster) {
	o := databases(t)
	others := o.dump(t)
	timers := o.nbctl(t, "get", "NB_Global", ".", "options", "external_ids")
	p := c.controller(t, o)
	c.apply(t, baseObjects+far[strings.Index(far, "---"):]) // without its pool
	c.endpoints(t, "web", "10.244.1.10")
	web := func() []string { return c.addresses(t, "web") }
	announced := func() {
		t.Helper()
		eventually(t, "rows in OVN", func() bool { return len(o.loadBalancers(t)) > 0 && len(o.gatewayPorts(t)) > 0 })
	}
	withdrawn := func() {
		t.Helper()
		eventually(t, "no row of ours in OVN", func() bool { return o.dump(t) == others })
		eventually(t, "the timers that were there", func() bool {
			return o.nbctl(t, "get", "NB_Global", ".", "options", "external_ids") == timers
		})
	}
	c.service(t, "web")
	had := web()
	announced()

	// The kind is created later, and then its object. Its networks count even without an annotation.
	c.openShift(t)
	c.apply(t, networkOperator)
	eventually(t, "the pool reports OVN-Kubernetes' own network", func() bool {
		return strings.Contains(c.awaitCondition(t, "ippool/lan", v1alpha1.ConditionAccepted, "True PartlyUsable"),
			"10.50.0.100/30 is in OVN-Kubernetes' own network")
	})
	announced()

	c.mode(t, "Disabled")
	withdrawn()
	c.condition(t, "web", v1alpha1.ConditionAnnounced, v1alpha1.ReasonDisabledByMode)
	c.service(t, "late")
	c.condition(t, "late", v1alpha1.ConditionAllocated, v1alpha1.ReasonDisabledByMode)
	c.awaitCondition(t, "ippool/lan", v1alpha1.ConditionReady, "False DisabledByMode")
	c.awaitCondition(t, "ippool/lan", v1alpha1.ConditionModeAccepted, "True Disabled")
	c.awaitCondition(t, "l2domain/lan", v1alpha1.ConditionReady, "False DisabledByMode")
	c.awaitCondition(t, "bgppeer/tor", v1alpha1.ConditionReady, "False DisabledByMode")
	c.event(t, "cluster", v1alpha1.EventModeChanged, "mode Disabled instead of Layer2+BGP")
	if got := p.gauge(t, "ovnkube_slb_dataplane_enabled"); got != "0 0" {
		t.Errorf("dataplanes enabled: %s", got)
	}

	// An invalid mode changes nothing, even for a restarted controller that never observed a valid one.
	c.mode(t, "layer2")
	c.awaitCondition(t, "ippool/lan", v1alpha1.ConditionModeAccepted, "False Disabled")
	c.event(t, "cluster", v1alpha1.EventModeRefused,
		`"layer2" is none of Disabled, Layer2, BGP and Layer2+BGP; the mode stays Disabled`)
	p.stop()
	p = c.controller(t, o)
	eventually(t, "the new controller refuses it, too", func() bool {
		return p.gauge(t, "ovnkube_slb_mode_refused") == "1"
	})
	if got := p.gauge(t, "ovnkube_slb_dataplane_enabled"); got != "0 0" {
		t.Errorf("dataplanes enabled after a restart: %s", got)
	}
	withdrawn()

	c.mode(t, "Layer2")
	announced()
	c.awaitCondition(t, "ippool/lan", v1alpha1.ConditionModeAccepted, "True Layer2")
	c.awaitCondition(t, "bgppeer/tor", v1alpha1.ConditionReady, "False DisabledByMode")
	c.addresses(t, "late")
	if got := web(); !slices.Equal(got, had) || p.gauge(t, "ovnkube_slb_mode_refused") != "0" {
		t.Errorf("web has %v, had %v", got, had)
	}

	// Without its object the mode stays. Without the annotation the flags determine the mode.
	c.mode(t, "BGP")
	withdrawn()
	c.awaitCondition(t, "bgppeer/tor", v1alpha1.ConditionReady, "False NoSession")
	c.kubectl(t, "delete", operatorKind, "cluster")
	eventually(t, "the pool may give the addresses of the former network", func() bool {
		return c.awaitCondition(t, "ippool/lan", v1alpha1.ConditionAccepted, "True Accepted") != ""
	})
	withdrawn()
	c.apply(t, networkOperator)
	announced()
	eventually(t, "pools drop the condition", func() bool {
		return c.kubectl(t, "get", "ippool/lan", "-o",
			`jsonpath={.status.conditions[?(@.type=="ModeAccepted")].status}`) == ""
	})

	// Addresses are released only on request, and only after they are withdrawn.
	c.mode(t, "Disabled", v1alpha1.AnnotationReleaseOnDisable+"=true")
	withdrawn()
	c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonDisabledByMode)
	eventually(t, "no addresses", func() bool { return len(c.get(t, "web").Status.LoadBalancer.Ingress) == 0 })
	c.mode(t, "Layer2+BGP")
	web()
	announced()
}

// typeOfTheNetwork reads the network type with the permissions of the controller.
func typeOfTheNetwork(t *testing.T, c *cluster) {
	client, config := c.account(t)
	is := func(want string) {
		t.Helper()
		if got, err := slb.OpenShiftNetworkType(t.Context(), client, config); err != nil || got != want {
			t.Errorf("the network is %q, want %q (%v)", got, want, err)
		}
	}
	is("") // a plain cluster
	c.openShift(t)
	is("")
	c.apply(t, "apiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec: {networkType: "+
		"OVNKubernetes}\nstatus: {networkType: OpenShiftSDN}\n")
	is("OpenShiftSDN") // until the migration is complete
}

// startedOff runs a controller that is disabled by its flag.
func startedOff(t *testing.T, c *cluster) {
	c.openShift(t)
	c.controller(t, nil, func(o *slb.Options) { o.Disabled = true })
	c.apply(t, baseObjects)
	c.service(t, "web")
	c.condition(t, "web", v1alpha1.ConditionAllocated, v1alpha1.ReasonDisabledByMode)
	c.apply(t, networkOperator)
	c.mode(t, "Layer2")
	c.addresses(t, "web")
	c.mode(t, "")
	c.awaitCondition(t, "ippool/lan", v1alpha1.ConditionReady, "False DisabledByMode")
	c.addresses(t, "web")
}

// nodesAreRebooted drains a node as OpenShift's machine config operator does, and then deletes another node.
func nodesAreRebooted(t *testing.T, c *cluster) {
	o := databases(t)
	c.controller(t, o)
	c.apply(t, baseObjects)
	c.endpoints(t, "web", "10.244.1.10")
	c.service(t, "web")
	first := func() string {
		return c.kubectl(t, "get", "l2domain/lan", "-o", `jsonpath={.status.shards[0].gateways[0]}`)
	}
	left := func() string {
		return c.kubectl(t, "get", "l2domain/lan", "-o", `jsonpath={range .status.excludedNodes[*]}{.name} {.reason}{end}`)
	}
	eventually(t, "a first gateway", func() bool { return first() != "" })
	leaver := first()
	o.claim(t, "chassis-"+leaver[1:])
	annotate := func(desired, applied string) {
		const prefix = "machineconfiguration.openshift.io/"
		c.kubectl(t, "annotate", "--overwrite", "node", leaver, prefix+"desiredDrain="+desired,
			prefix+"lastAppliedDrain="+applied)
	}
	t.Cleanup(func() {
		c.kubectl(t, "annotate", "node", leaver, "machineconfiguration.openshift.io/desiredDrain-",
			"machineconfiguration.openshift.io/lastAppliedDrain-")
	})
	annotate("drain-rendered-worker-2", "uncordon-rendered-worker-1")
	eventually(t, "the gateway that is to go is behind the others", func() bool {
		return first() != leaver && left() == leaver+" Draining"
	})
	annotate("drain-rendered-worker-2", "drain-rendered-worker-2") // its Pods are gone, the node reboots
	heir := first()
	o.claim(t, "chassis-"+heir[1:])
	c.settled(t, func() [2]int { return [2]int{o.transactions(t), 0} })
	if first() != heir || left() != leaver+" Draining" {
		t.Errorf("first is %s, excluded are %s", first(), left())
	}
	annotate("uncordon-rendered-worker-2", "drain-rendered-worker-2")
	eventually(t, "it may carry again", func() bool { return left() == "" })
	if first() != heir {
		t.Errorf("%s took its shard back from %s", first(), heir)
	}

	c.kubectl(t, "patch", "node", heir, "--type=merge", `-p={"metadata":{"finalizers":["example.org/wait"]}}`)
	c.kubectl(t, "delete", "node", heir, "--wait=false")
	eventually(t, "a node that is being deleted hands over", func() bool {
		return first() != heir && left() == heir+" Draining"
	})
	c.kubectl(t, "patch", "node", heir, "--type=merge", `-p={"metadata":{"finalizers":null}}`)
	eventually(t, "it is gone", func() bool {
		return !strings.Contains(c.kubectl(t, "get", "l2domain/lan", "-o", "jsonpath={.status.shards[0].gateways}"), heir)
	})
	c.node(t, int(heir[1]-'0'))
}
