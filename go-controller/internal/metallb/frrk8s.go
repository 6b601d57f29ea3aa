// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	kindFRRConfiguration = "FRRConfiguration"
	// backendVariable is the variable of MetalLB's containers that has the mode of BGP.
	backendVariable = "METALLB_BGP_TYPE"
	// modeFRRK8s is the mode in which frr-k8s has the sessions; a suffix says that it is not part of MetalLB.
	modeFRRK8s = "frr-k8s"
)

// The timers of a neighbor for which FRR is given none.
const (
	frrHoldTime                      = 180 * time.Second
	frrKeepaliveTime, frrConnectTime = 60 * time.Second, 60 * time.Second
)

// frrConfigurations are what the objects of frr-k8s say.
type frrConfigurations struct {
	// namespace is that of the objects that MetalLB writes, one per node; empty if there is none.
	namespace string
	// others are the objects of other writers.
	others []string
}

func (f *frrConfigurations) read(o *unstructured.Unstructured, name string) {
	_, ours := o.GetLabels()[frrapi.LabelPeer]
	switch {
	case ours:
	case strings.HasPrefix(name, "metallb-"):
		f.namespace = o.GetNamespace()
	default:
		f.others = append(f.others, name)
	}
}

// readBackend finds out whether frr-k8s has MetalLB's sessions. What the speakers run counts before what the operator
// is told, and objects that MetalLB has written if neither is known.
func (c *conversion) readBackend() {
	found := &workload{ref: kindFRRConfiguration, backend: modeFRRK8s}
	known := c.source.frr.namespace != ""
	for _, w := range c.source.workloads {
		if w.speaks && w.backend != "" && (!known || found.path == "" || strings.HasPrefix(w.ref, "DaemonSet/")) {
			found, known = w, true
		}
	}
	c.frrK8s = known && strings.HasPrefix(found.backend, modeFRRK8s)
	const most = 10
	if others := world.Some(c.source.frr.others, most); c.frrK8s && others != "" {
		c.add(Note, kindFRRConfiguration, "", "stay as they are, and frr-k8s merges those of BGPPeers with them: %s", others)
	} else if others != "" {
		c.add(Warning, kindFRRConfiguration, "", "the configuration of FRR has no equivalent: %s", others)
	}
	if !c.frrK8s {
		return
	}
	namespace := c.source.frr.namespace
	if namespace == "" {
		namespace = "NAMESPACE"
	}
	c.add(Warning, found.ref, found.backendField, "frr-k8s has MetalLB's sessions, and keeps them: BGPPeers get "+
		"spec.backend: FRRK8s, for which the controller needs --frr-k8s-namespace=%s. No session is reset if the "+
		"FRRConfigurations of MetalLB are deleted after the import, when the BGPPeers are Ready", namespace)
}

// keepSession makes a peer what MetalLB gives frr-k8s, because only a session with equal fields is not reset.
func (c *conversion) keepSession(p *peer, out *v1alpha1.BGPPeerSpec) {
	ref := p.String()
	out.Backend = v1alpha1.BackendFRRK8s
	if out.SourceAddress != "" {
		c.add(Warning, ref, "spec.sourceAddress", "%s is removed: MetalLB does not give it to frr-k8s", out.SourceAddress)
		out.SourceAddress = ""
	}
	third := func(hold *metav1.Duration) time.Duration {
		return (hold.Duration / v1alpha1.KeepalivesPerHoldTime).Truncate(time.Second)
	}
	isDefault := func(hold, keepalive *metav1.Duration) bool {
		return hold == nil || hold.Duration == frrHoldTime ||
			keepalive != nil && keepalive.Duration == frrKeepaliveTime ||
			keepalive == nil && third(hold) == frrKeepaliveTime
	}
	if isDefault(out.HoldTime, out.KeepaliveTime) {
		out.HoldTime = &metav1.Duration{Duration: frrHoldTime}
		out.KeepaliveTime = &metav1.Duration{Duration: frrKeepaliveTime}
		c.add(Note, ref, "spec.holdTime, spec.keepaliveTime", "are written as %s and %s, with which FRR runs the session",
			frrHoldTime, frrKeepaliveTime)
	}
	if out.ConnectTime == nil {
		out.ConnectTime = &metav1.Duration{Duration: frrConnectTime}
		c.add(Note, ref, "spec.connectTime", "is written as %s, with which FRR runs the session", frrConnectTime)
	}
}
