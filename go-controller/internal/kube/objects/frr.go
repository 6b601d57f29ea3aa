// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// UsesFRR reports whether FRR may have routes of ours: frr-k8s has the sessions of a BGPPeer, or runs on nodes, where a
// BGPPeer may have had this backend before.
func (o *Objects) UsesFRR() bool {
	byFRR := func(p *v1alpha1.BGPPeer) bool { return p.Spec.Backend == v1alpha1.BackendFRRK8s }
	return len(o.FRRNodes) > 0 || slices.ContainsFunc(o.Peers, byFRR)
}

// FRRNamespace returns the namespace of frr-k8s, empty if it is not known: that of the FRRConfigurations,
// or of BGPSessionStates.
func (o *Objects) FRRNamespace() string {
	if n := len(o.FRRConfigurations); n > 0 {
		return o.FRRConfigurations[n-1].Namespace
	}
	if n := len(o.FRRSessions); n > 0 {
		return o.FRRSessions[n-1].Namespace
	}
	return ""
}

// frr returns what frr-k8s has; nil if it is not used. Whether the controller uses it is in its conditions. Secrets
// are not read: those that FRRConfigurations and BGPPeers refer to are taken as present.
func (o *Objects) frr() *world.FRR {
	if !o.UsesFRR() {
		return nil
	}
	out := &world.FRR{Nodes: map[string]*world.FRRNode{}, Sessions: map[string]map[string]string{},
		Passwords: map[string]string{}, Refused: map[string]string{}, Stopped: map[string]string{}}
	for _, p := range o.Peers {
		if p.Spec.Backend != v1alpha1.BackendFRRK8s {
			continue
		}
		if secret := p.Spec.PasswordSecret; secret != nil && !o.lacksSecret(p) {
			out.Passwords[secret.Name] = "Secret " + secret.Name
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil {
			continue
		}
		switch c.Reason {
		case v1alpha1.ReasonNoFRRK8s:
			out.Missing = strings.TrimPrefix(frr.Bounded(c.Message), world.FRRPrefix)
		case v1alpha1.ReasonFRRRefused:
			out.Refused[p.Name] = frr.Bounded(c.Message)
		}
	}
	for _, resource := range []string{frr.Configurations, frr.NodeStates, frr.SessionStates} {
		if slices.Contains(o.Unread, resource) {
			out.Unread = "you may not list " + resource
		}
	}
	out.Namespace = o.FRRNamespace()
	for _, c := range o.FRRConfigurations {
		out.Configurations = append(out.Configurations, frr.Read(c, o.Nodes))
		for _, r := range c.Spec.BGP.Routers {
			for i := range r.Neighbors {
				if name := r.Neighbors[i].Secret.Name; name != "" {
					out.Passwords[name] = "Secret " + name
				}
			}
		}
	}
	o.addFRRReports(out)
	return out
}

// addFRRReports adds what frr-k8s reports of nodes.
func (o *Objects) addFRRReports(out *world.FRR) {
	states, sessions := map[string]*world.FRRNode{}, map[string]frr.Sessions{}
	for _, s := range o.FRRNodes {
		trimmed := *s // the object stays as it is
		states[s.Name] = frr.ReadNode(frr.Trimmed(&trimmed))
	}
	for _, s := range o.FRRSessions {
		trimmed := *s
		is := frr.TrimmedSession(&trimmed).Status
		if is.VRF != "" {
			continue
		}
		if sessions[is.Node] == nil {
			sessions[is.Node] = frr.Sessions{}
		}
		sessions[is.Node][s.Name] = is
	}
	daemons := frr.Daemons{}
	for _, pod := range o.Pods {
		if pod.Namespace == out.Namespace {
			daemons.Set(nil, pod)
		}
	}
	for _, n := range o.Nodes {
		frr.AddReports(out, n.Name, states[n.Name], sessions[n.Name])
		if len(daemons) == 0 { // the user may not read them, or they are not among the manifests
			continue
		}
		if why := daemons.Stopped(out.Namespace, n.Name); why != "" {
			out.Stopped[n.Name] = why
		}
	}
}
