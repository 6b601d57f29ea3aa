// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Check returns a manifest of a kind of slb.k8s.ovn.org as the API server would store it, and the errors for which it
// would be refused. old is the present object, nil if there is none.
type Check func(kind string, old, manifest map[string]any) (map[string]any, field.ErrorList, error)

// Edited is what became of the manifests of an edit.
type Edited struct {
	// Refused are the errors for which the API server would refuse objects. These objects stay as they are.
	Refused []string
	// Ignored are objects that decide nothing, and why.
	Ignored []string
	// Notes are about objects of which the result depends on how the manifest is applied.
	Notes []string
}

// Edit sets the objects of manifests of users as the API server would store them after kubectl apply, or after kubectl
// replace if a manifest has a UID or a resourceVersion. The objects keep what the API server and controllers write:
// status, UID and time of creation. New objects are created from now on, a second after each other. Kinds without a
// namespace ignore that of a manifest; others without one are in the given namespace. Text that kubectl can't read is
// an error.
func (o *Objects) Edit(documents []byte, namespace string, now time.Time, check Check) (*Edited, error) {
	manifests, err := manifest.Parse(documents)
	if err != nil {
		return nil, err
	}
	out := &Edited{}
	for i, u := range manifests {
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, fmt.Errorf("object %d (kind %q, apiVersion %q): want kind and apiVersion", i+1, u.GetKind(),
				u.GetAPIVersion())
		}
		// Of two new objects, kubectl apply creates the first one in the file first.
		if err := o.edit(u, namespace, now.Add(time.Duration(i)*time.Second), check, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *Objects) edit(u *unstructured.Unstructured, namespace string, now time.Time, check Check, out *Edited) error {
	l, known := o.lists()[u.GetKind()]
	ignore := func(format string, args ...any) {
		out.Ignored = append(out.Ignored, describe(u)+": ignored, because "+fmt.Sprintf(format, args...))
	}
	refuse := func(format string, args ...any) {
		out.Refused = append(out.Refused, describe(u)+": would be refused: "+fmt.Sprintf(format, args...))
	}
	group, _, _ := strings.Cut(u.GetAPIVersion(), "/")
	ours := group == v1alpha1.GroupVersion().Group
	switch {
	case ours && u.GetAPIVersion() != v1alpha1.GroupVersion().String():
		refuse("apiVersion: %s is not %s", u.GetAPIVersion(), v1alpha1.GroupVersion())
		return nil
	case ours && !known:
		if _, _, err := check(u.GetKind(), nil, u.Object); err != nil {
			refuse("kind: %v", err)
		} else {
			ignore("controllers write this kind")
		}
		return nil
	case u.GetKind() == "Secret" && u.GetName() != "" && u.GetAPIVersion() == corev1.SchemeGroupVersion.String() &&
		slices.Contains(o.passwordNamespaces(), cmp.Or(u.GetNamespace(), namespace)):
		if o.EditedSecrets == nil {
			o.EditedSecrets = map[string]bool{}
		}
		o.EditedSecrets[cmp.Or(u.GetNamespace(), namespace)+"/"+u.GetName()] = true
		return nil
	case group == "k8s.ovn.org" && u.GetKind() == "EgressService":
		ignore("OVN-Kubernetes selects its node (status.host) only once it is applied; explain shows what follows")
		return nil
	case !known, u.GetKind() == "NetworkPolicy": // explain alone reads those
		ignore("no decision depends on this kind")
		return nil
	case u.GetAPIVersion() != l.apiVersion:
		converts := ""
		if group == "metallb.io" {
			converts = "; kubectl slb import metallb converts it"
		}
		ignore("it is of %s, not of %s%s", u.GetAPIVersion(), l.apiVersion, converts)
		return nil
	case u.GetName() == "":
		refuse("metadata.name: Required value: plan and kubectl apply need the name that the object gets")
		return nil
	case l.namespaced && u.GetNamespace() == "":
		u.SetNamespace(namespace)
	case !l.namespaced:
		u.SetNamespace("")
	}
	old, err := l.find(u.GetNamespace(), u.GetName())
	if err != nil {
		return err
	}
	next, note, errs, err := stored(u, l.typed, old, check)
	if err != nil {
		return err
	}
	switch {
	case len(errs) > 0:
	case u.GetKind() == "IPAddressPool":
		errs = o.overlaps(next)
	case u.GetKind() == "Service":
		errs = serviceErrors(old, next)
	}
	if len(errs) == 0 {
		complete(next, old, now)
		if u.GetKind() == "Service" {
			o.setFamilies(next, old)
		}
		if err := l.set(next); err != nil {
			errs = []string{err.Error()}
		}
	}
	for _, e := range errs {
		refuse("%s", e)
	}
	if len(errs) == 0 && note != "" {
		out.Notes = append(out.Notes, note)
	}
	return nil
}

// classChange returns the error of the API server for an edit of spec.loadBalancerClass: it does not change, and is not
// set later, while a Service is of type LoadBalancer.
func classChange(old, next map[string]any) []string {
	of := func(service map[string]any, name string) string {
		value, _, _ := unstructured.NestedString(service, "spec", name)
		return value
	}
	const kind = string(corev1.ServiceTypeLoadBalancer)
	class := of(next, "loadBalancerClass")
	if old == nil || of(old, "type") != kind || of(next, "type") != kind || of(old, "loadBalancerClass") == class {
		return nil
	}
	return []string{field.Invalid(field.NewPath("spec", "loadBalancerClass"), class,
		"may not change once set").Error()}
}

// setFamilies sets spec.ipFamilies of a Service as the API server does (KEP-563), by the families of the cluster's
// Services and nodes. old is the Service before the edit, whose first family stays; nil if it is new.
func (o *Objects) setFamilies(service, old map[string]any) {
	spec, _ := service["spec"].(map[string]any)
	if spec == nil || spec["ipFamilies"] != nil {
		return
	}
	families := []any{string(corev1.IPv4Protocol)}
	for _, s := range o.Services {
		if len(s.Spec.IPFamilies) > 0 {
			families[0] = string(s.Spec.IPFamilies[0])
		}
		if len(s.Spec.IPFamilies) > 1 {
			break
		}
	}
	if was, _, _ := unstructured.NestedStringSlice(old, "spec", "ipFamilies"); len(was) > 0 {
		families[0] = was[0]
	}
	dual := slices.ContainsFunc(o.Services, func(s *corev1.Service) bool { return len(s.Spec.IPFamilies) > 1 }) ||
		slices.ContainsFunc(o.Nodes, func(n *corev1.Node) bool {
			subnets := convert.Node(n, convert.Options{}).PodSubnets
			return slices.ContainsFunc(subnets, func(p netip.Prefix) bool { return p.Addr().Is4() }) &&
				slices.ContainsFunc(subnets, func(p netip.Prefix) bool { return p.Addr().Is6() })
		})
	if policy, _ := spec["ipFamilyPolicy"].(string); dual && policy != "" &&
		policy != string(corev1.IPFamilyPolicySingleStack) {
		other := corev1.IPv6Protocol
		if families[0] == string(other) {
			other = corev1.IPv4Protocol
		}
		families = append(families, string(other))
	}
	spec["ipFamilies"] = families
}

// complete sets what the API server and controllers write.
func complete(next, old map[string]any, now time.Time) {
	metadata, _ := next["metadata"].(map[string]any)
	delete(next, "status")
	metadata["creationTimestamp"] = now.UTC().Format(time.RFC3339)
	if old == nil {
		return
	}
	if was, ok := old["metadata"].(map[string]any); ok {
		metadata["creationTimestamp"], metadata["uid"] = was["creationTimestamp"], was["uid"]
	}
	next["status"] = old["status"]
	was, _, _ := unstructured.NestedString(old, "spec", "physicalNetwork")
	is, _, _ := unstructured.NestedString(next, "spec", "physicalNetwork")
	if status, ok := old["status"].(map[string]any); ok && was != is {
		// Which nodes are attached to another network is not known.
		of := maps.Clone(status)
		delete(of, "excludedNodes")
		delete(of, "eligibleNodes")
		next["status"] = of
	}
	if status, ok := old["status"].(map[string]any); ok && secretOf(old) != secretOf(next) {
		// What the controller has reported of one Secret does not hold for another.
		of := maps.Clone(status)
		conditions, _ := of["conditions"].([]any)
		of["conditions"] = slices.DeleteFunc(slices.Clone(conditions), func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["reason"] == v1alpha1.ReasonSecretNotFound
		})
		next["status"] = of
	}
}

// secretOf returns the backend and the name of the Secret of a BGPPeer, which say what its passwordSecret is; empty for
// other kinds.
func secretOf(object map[string]any) [2]string {
	backend, _, _ := unstructured.NestedString(object, "spec", "backend")
	name, _, _ := unstructured.NestedString(object, "spec", "passwordSecret", "name")
	return [2]string{backend, name}
}

// describe returns KIND NAME, or KIND NAMESPACE/NAME.
func describe(u *unstructured.Unstructured) string {
	name := u.GetName()
	if name == "" {
		name = u.GetGenerateName()
	}
	if u.GetNamespace() != "" {
		name = u.GetNamespace() + "/" + name
	}
	return u.GetKind() + " " + name
}
