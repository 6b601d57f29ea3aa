// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Action is what an edit does to an object, by the verbs of the API. Effects have other words.
type Action string

// The values of Action.
const (
	Created Action = "creates"
	Updated Action = "updates"
	Deleted Action = "deletes"
)

// ObjectEdit is an object of slb.k8s.ovn.org that the edit creates, updates or deletes.
type ObjectEdit struct {
	// Object is KIND NAME.
	Object string `json:"object"`
	Action Action `json:"action"`
	// Fields are those of the spec that change.
	Fields []manifest.FieldChange `json:"fields,omitempty"`
}

// compareObjects returns what an edit does to objects, sorted by kind and name.
func compareObjects(before, after *objects.Objects) []ObjectEdit {
	list := slices.Concat(
		edits("IPAddressPool", before.Pools, after.Pools, func(o *v1alpha1.IPAddressPool) any { return &o.Spec }),
		edits("L2Domain", before.Domains, after.Domains, func(o *v1alpha1.L2Domain) any { return &o.Spec }),
		edits("BGPPeer", before.Peers, after.Peers, func(o *v1alpha1.BGPPeer) any { return &o.Spec }),
		edits("BGPAdvertisement", before.Advertisements, after.Advertisements,
			func(o *v1alpha1.BGPAdvertisement) any { return &o.Spec }),
		edits("BFDProfile", before.Profiles, after.Profiles, func(o *v1alpha1.BFDProfile) any { return &o.Spec }),
		edits("Community", before.Communities, after.Communities, func(o *v1alpha1.Community) any { return &o.Spec }),
	)
	slices.SortFunc(list, func(a, b ObjectEdit) int { return cmp.Compare(a.Object, b.Object) })
	return list
}

func edits[T interface {
	comparable
	metav1.Object
}](kind string, before, after []T, spec func(T) any) []ObjectEdit {
	var list []ObjectEdit
	var none T
	for _, o := range after {
		old, e := objects.Named(before, o.GetName()), ObjectEdit{Object: kind + " " + o.GetName(), Action: Updated}
		if old == none {
			e.Action = Created
		} else if e.Fields = manifest.Changed(fields(spec(old)), fields(spec(o))); len(e.Fields) == 0 {
			continue
		}
		list = append(list, e)
	}
	for _, o := range before {
		if objects.Named(after, o.GetName()) == none {
			list = append(list, ObjectEdit{Object: kind + " " + o.GetName(), Action: Deleted})
		}
	}
	return list
}

// unfollowed are the fields of a Service that decide which clients and endpoints it has. What they do is not compared.
type unfollowed struct {
	Selector                 map[string]string `json:"selector,omitempty"`
	LoadBalancerSourceRanges []string          `json:"loadBalancerSourceRanges,omitempty"`
	Ports                    string            `json:"ports,omitempty"`
	// These have the defaults of the API server.
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy"`
	SessionAffinity       corev1.ServiceAffinity              `json:"sessionAffinity"`
}

// portsOf returns the ports of a Service, without the node ports, which the API server sets.
func portsOf(s *corev1.Service) string {
	var list []string
	for _, p := range s.Spec.Ports {
		target := p.TargetPort.String()
		if target == "0" || target == "" {
			target = strconv.Itoa(int(p.Port))
		}
		list = append(list, fmt.Sprintf("%d/%s to %s", p.Port, cmp.Or(p.Protocol, corev1.ProtocolTCP), target))
	}
	slices.Sort(list)
	return strings.Join(list, " and ")
}

// compareUnfollowed returns the Services of which the edit changes such fields, and those that it creates or deletes.
func compareUnfollowed(before, after []*corev1.Service) []ObjectEdit {
	was := map[types.NamespacedName]*corev1.Service{}
	for _, s := range before {
		was[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = s
	}
	of := func(s *corev1.Service) map[string]string {
		return fields(&unfollowed{s.Spec.Selector, s.Spec.LoadBalancerSourceRanges, portsOf(s),
			cmp.Or(s.Spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster),
			cmp.Or(s.Spec.SessionAffinity, corev1.ServiceAffinityNone)})
	}
	var list []ObjectEdit
	for _, s := range after {
		key := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		old := was[key]
		delete(was, key)
		switch {
		case old == s || s.Spec.Type != corev1.ServiceTypeLoadBalancer:
			continue
		case old == nil:
			list = append(list, ObjectEdit{Object: serviceObject(s.Namespace, s.Name), Action: Created})
			continue
		}
		if changed := manifest.Changed(of(old), of(s)); len(changed) > 0 {
			list = append(list, ObjectEdit{Object: serviceObject(s.Namespace, s.Name), Action: Updated, Fields: changed})
		}
	}
	for key := range was {
		list = append(list, ObjectEdit{Object: serviceObject(key.Namespace, key.Name), Action: Deleted})
	}
	slices.SortFunc(list, func(a, b ObjectEdit) int { return cmp.Compare(a.Object, b.Object) })
	return list
}

// serviceObject names a Service in an ObjectEdit.
func serviceObject(namespace, name string) string { return "Service " + namespace + "/" + name }

// otherClasses returns notes about Services that become ones of type LoadBalancer with a class that is not served.
// served are those that are.
func otherClasses(before, after []*corev1.Service, served map[world.Key]bool) []string {
	was := map[world.Key]bool{}
	for _, s := range before {
		was[world.Key{Namespace: s.Namespace, Name: s.Name}] = s.Spec.Type == corev1.ServiceTypeLoadBalancer
	}
	var notes []string
	for _, s := range after {
		key, class := world.Key{Namespace: s.Namespace, Name: s.Name}, s.Spec.LoadBalancerClass
		if class == nil || s.Spec.Type != corev1.ServiceTypeLoadBalancer || was[key] || served[key] {
			continue
		}
		notes = append(notes, fmt.Sprintf("Service %s: class %s: no address from this controller (OtherClass), unless its "+
			"--load-balancer-class lists it", key, *class))
	}
	slices.Sort(notes)
	return notes
}

// fields returns the values of a spec by the paths of its fields, without those that are unset. The subnets of an
// L2Domain are a field each.
func fields(spec any) map[string]string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil // not reached: the types have a JSON form
	}
	domain, ok := spec.(*v1alpha1.L2DomainSpec)
	if !ok {
		return manifest.Fields(content)
	}
	delete(content, "subnets")
	out := manifest.Fields(content)
	for _, s := range domain.Subnets {
		out["subnets["+s.CIDR+"]"] = "gateway " + cmp.Or(string(s.Gateway), "none")
	}
	return out
}

// text returns the edit in one line.
func (e *ObjectEdit) text() string {
	line := string(e.Action) + " " + e.Object
	var changes []string
	for _, f := range e.Fields {
		changes = append(changes, f.String())
	}
	if len(changes) > 0 {
		line += ": " + strings.Join(changes, "; ")
	}
	return line
}
