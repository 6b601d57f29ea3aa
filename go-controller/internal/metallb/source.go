// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Parse reads YAML documents or JSON values. The items of lists are returned one by one.
func Parse(data []byte) ([]*unstructured.Unstructured, error) { return manifest.Parse(data) }

// source is the configuration of MetalLB, by kind and sorted by name.
type source struct {
	pools            []*pool
	l2Advertisements []*l2Advertisement
	peers            []*peer
	advertisements   []*bgpAdvertisement
	profiles         []*bfdProfile
	communities      []*community

	workloads []*workload
	services  []*corev1.Service
	frr       frrConfigurations
	// ignored are the objects that configure nothing.
	ignored []string

	seen map[string]string // where each object is, by kind and name
	// renamedPools are the new names of pools of ConfigMaps by the old ones, if they differ.
	renamedPools map[string]string
}

// readSource decodes MetalLB's objects. Objects that are not MetalLB's are named in findings.
func readSource(objects []*unstructured.Unstructured, fs *findings) *source {
	s := &source{seen: map[string]string{}, renamedPools: map[string]string{}}
	sorted := slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(text(a.Object, "kind"), text(b.Object, "kind")),
			cmp.Compare(text(a.Object, "metadata", "name"), text(b.Object, "metadata", "name")),
			cmp.Compare(text(a.Object, "metadata", "namespace"), text(b.Object, "metadata", "namespace")))
	})
	for _, o := range sorted { // The order of the input does not matter.
		s.read(o, fs)
	}
	if len(s.ignored) > 0 {
		const most = 10
		fs.add(Note, "", "", "ignored, because they configure no announcement: %s", world.Some(s.ignored, most))
	}
	return s
}

func (s *source) read(o *unstructured.Unstructured, fs *findings) {
	kind, name := text(o.Object, "kind"), text(o.Object, "metadata", "name")
	ref := kind + "/" + name
	apiVersion := text(o.Object, "apiVersion")
	if apiVersion == "v1" && kind == kindConfigMap {
		if _, has, _ := unstructured.NestedFieldNoCopy(o.Object, "data", configKey); has || name == configKey ||
			name == extrasName {
			s.readConfigMap(o, fs)
		} else {
			s.ignored = append(s.ignored, ref)
		}
		return
	}
	if apiVersion == "v1" && kind == "Service" {
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, service); err != nil {
			fs.add(Error, ref, "", "%v", err)
			return
		}
		s.services = append(s.services, service)
		return
	}
	group, version, _ := strings.Cut(apiVersion, "/")
	switch {
	case group == frrapi.Group && kind == kindFRRConfiguration:
		s.frr.read(o, name)
		return
	case group != Group:
		if !s.readWorkload(ref, o, fs) {
			s.ignored = append(s.ignored, ref)
		}
		return
	}
	if version != "v1beta1" && (version != "v1beta2" || kind != kindPeer) {
		fs.add(Error, ref, "apiVersion", "%s is unknown to this command", apiVersion)
		return
	}
	if !s.isNew(ref, fmt.Sprintf("namespace %q", text(o.Object, "metadata", "namespace")), "metadata.namespace", fs) {
		return
	}
	switch kind {
	case kindPool:
		decode(o, &s.pools, fs)
	case kindL2Advertisement:
		decode(o, &s.l2Advertisements, fs)
	case kindPeer:
		decode(o, &s.peers, fs)
	case kindBGPAdvertisement:
		decode(o, &s.advertisements, fs)
	case kindBFDProfile:
		decode(o, &s.profiles, fs)
	case kindCommunity:
		decode(o, &s.communities, fs)
	case kindOperator:
		s.readOperator(ref, o, fs)
	case "ServiceL2Status", "ServiceBGPStatus", "ConfigurationState", "BGPSessionState":
		// MetalLB's own reports.
	case "AddressPool":
		fs.add(Error, ref, "", "this kind of MetalLB 0.12 and 0.13 is not converted: write an IPAddressPool and an "+
			"advertisement instead, as MetalLB 0.13 and later require")
	default:
		fs.add(Error, ref, "", "kind %s is unknown to this command", kind)
	}
}

// isNew records where an object is. It returns false, with a finding, if another one has its kind and name.
func (s *source) isNew(ref, in, field string, fs *findings) bool {
	other, seen := s.seen[ref]
	if seen {
		fs.add(Error, ref, field, "an object of this name is in %s and in %s. The kinds of slb.k8s.ovn.org have no "+
			"namespace: rename one, or import one of them only", other, in)
		return false
	}
	s.seen[ref] = in
	return true
}

// decode appends an object with its spec. Fields that can't be decoded are named in findings, and make it incomplete.
func decode[S any](o *unstructured.Unstructured, list *[]*object[S], fs *findings) {
	out := &object[S]{kind: text(o.Object, "kind"), name: text(o.Object, "metadata", "name")}
	if labels, _, err := unstructured.NestedStringMap(o.Object, "metadata", "labels"); err == nil {
		out.labels = labels
	}
	if out.name == "" {
		fs.add(Error, out.String(), "metadata.name", "is missing")
		return
	}
	spec, ok := o.Object["spec"].(map[string]any)
	if !ok && o.Object["spec"] != nil {
		fs.add(Error, out.String(), "spec", "is not an object")
		return
	}
	d := &strictDecoder{findings: fs, object: out.String()}
	if err := d.decode(spec, &out.spec); err != nil {
		fs.add(Error, out.String(), "spec", "%v", err)
		return
	}
	out.incomplete = d.failed
	*list = append(*list, out)
}

// text returns a string of an object, or an empty one if there is none.
func text(o map[string]any, path ...string) string {
	s, _, err := unstructured.NestedString(o, path...)
	if err != nil {
		return ""
	}
	return s
}
