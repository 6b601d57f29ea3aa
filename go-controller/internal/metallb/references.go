// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// isConverted reports whether the result has an object.
func (c *conversion) isConverted(kind, name string) bool {
	if kind == kindPool {
		return slices.ContainsFunc(c.pools, func(p *v1alpha1.IPAddressPool) bool { return p.Name == name })
	}
	return slices.ContainsFunc(c.objects, func(o Object) bool {
		return o.GetName() == name && o.GetObjectKind().GroupVersionKind().Kind == kind
	})
}

// references returns the names in a field without duplicates and without objects that are not converted. Names that
// MetalLB has no object of stay: the object may be created later. references returns false if a list that selects
// objects would become empty, because that would select all objects.
func (c *conversion) references(ref, field, kind string, list []string) ([]string, bool) {
	var out []string
	for _, name := range unique(list) {
		switch {
		case c.exists(kind, name):
			out = append(out, name)
		case c.source.seen[kind+"/"+name] != "":
			c.add(Warning, ref, field, "%s %s is not converted, and is removed", kind, name)
		default:
			c.add(Warning, ref, field, "there is no %s %s", kind, name)
			out = append(out, name)
		}
	}
	return out, len(out) > 0 || len(list) == 0
}

// checkPoolRequest names a pool that a Service requests and that the result has by another name, or not at all.
func (c *conversion) checkPoolRequest(ref string, s *corev1.Service) {
	for _, key := range []string{v1alpha1.AnnotationAddressPool, v1alpha1.AnnotationMetalLBAddressPool,
		v1alpha1.AnnotationMetalLBLegacyAddressPool} {
		name := strings.TrimSpace(s.Annotations[key])
		field := "metadata.annotations[" + key + "]"
		switch renamed := c.source.renamedPools[name]; {
		case name == "" || c.exists(kindPool, name):
		case renamed != "":
			c.add(Warning, ref, field, "pool %s is named %s: %s", name, renamed, printable.Command("kubectl -n %s annotate "+
				"service %s %s --overwrite", s.Namespace, s.Name, v1alpha1.AnnotationAddressPool+"="+renamed))
		default:
			c.add(Warning, ref, field, "there will be no pool %s: the Service gets no address (PoolNotFound), or keeps the "+
				"one that it has", name)
		}
		if name != "" {
			return // The first annotation counts.
		}
	}
}
