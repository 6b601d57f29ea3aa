// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Input is what Convert reads.
type Input struct {
	// Objects are MetalLB's objects, in any order.
	Objects []*unstructured.Unstructured
	// Segments are the networks on which L2Advertisements announce. Each becomes an L2Domain.
	Segments []Segment
	// Services are the Services of the cluster. May be empty. They, and those in Objects that the cluster does not have,
	// are compared with the result.
	Services []*corev1.Service
	// NodeNetworks are the networks of the nodes. If they are known, they determine which BGPPeers are not on the link
	// of any node.
	NodeNetworks []netip.Prefix
	// Nodes are the nodes of the cluster, to find those on which no speaker runs. May be empty.
	Nodes []*corev1.Node
	// Existing are the objects of slb.k8s.ovn.org that the cluster has. May be empty.
	Existing []*unstructured.Unstructured
	// PeerNodes limits the BGPPeers to nodes with these labels, in addition to their own selectors, so that nodes can be
	// migrated one after another. May be empty.
	PeerNodes map[string]string
}

// Object is an object of slb.k8s.ovn.org.
type Object interface {
	metav1.Object
	runtime.Object
}

// Result is the converted configuration.
type Result struct {
	// Objects are in the order in which they must be created: what other objects refer to comes first, and pools, from
	// which addresses are allocated, last.
	Objects []Object
	// Findings are sorted by severity, the most important first.
	Findings []Finding
}

// Failed reports whether an object of the input is missing in the result.
func (r *Result) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

// Add adds findings, in the order of severity.
func (r *Result) Add(fs ...Finding) { r.Findings = findings(append(r.Findings, fs...)).sorted() }

// conversion is a conversion in progress.
type conversion struct {
	*findings
	input   *Input
	source  *source
	objects []Object
	// existing are the objects of the cluster.
	existing *existing

	// selectable are the keys of labels to which selectors of pools refer.
	selectable map[string]bool
	pools      []*v1alpha1.IPAddressPool
	domains    []*v1alpha1.L2Domain
	// speakerNodes select the nodes on which speakers run; empty for all.
	speakerNodes []metav1.LabelSelector
	// frrK8s is set if frr-k8s has MetalLB's sessions.
	frrK8s bool
	// layer2Pools are the pools that L2Domains may name, by the L2Advertisement that lists them.
	layer2Pools map[string][]string
	// domainPools are the names of the pools of each domain, sorted.
	domainPools map[string][]string
}

// Convert converts MetalLB's configuration.
func Convert(in Input) *Result {
	c := &conversion{findings: &findings{}, input: &in, selectable: map[string]bool{},
		layer2Pools: map[string][]string{}, domainPools: map[string][]string{}}
	c.source = readSource(in.Objects, c.findings)
	c.existing = readExisting(in.Existing, c.findings)
	c.findSelectable()
	c.readSpeakers()
	c.readBackend()
	c.convertPools()
	c.convertProfiles()
	names := c.convertCommunities()
	c.convertPeers()
	c.convertAdvertisements(names)
	c.convertDomains()
	for _, p := range c.pools {
		c.objects = append(c.objects, p)
	}
	c.checkExisting()
	c.checkServices()
	return &Result{Objects: c.objects, Findings: c.sorted()}
}

// findSelectable finds the labels to which selectors of pools refer.
func (c *conversion) findSelectable() {
	for _, a := range c.source.l2Advertisements {
		c.addSelectable(a.spec.IPAddressPoolSelectors)
	}
	for _, a := range c.source.advertisements {
		c.addSelectable(a.spec.IPAddressPoolSelectors)
	}
	for _, d := range c.existing.domains {
		c.addSelectable(d.Spec.IPAddressPoolSelectors)
	}
	for _, a := range c.existing.advertisements {
		c.addSelectable(a.Spec.IPAddressPoolSelectors)
	}
}

func (c *conversion) addSelectable(selectors []metav1.LabelSelector) {
	for _, s := range selectors {
		for key := range s.MatchLabels {
			c.selectable[key] = true
		}
		for _, e := range s.MatchExpressions {
			c.selectable[e.Key] = true
		}
	}
}

// meta returns the metadata of a converted object. Labels are kept if a selector refers to them. Other labels, for
// example those of Helm or Argo CD, would make their owner delete the object.
func meta[S any](o *object[S], selectable map[string]bool) metav1.ObjectMeta {
	labels := maps.Clone(o.labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !selectable[key] })
	if len(labels) == 0 {
		labels = nil
	}
	return metav1.ObjectMeta{Name: o.name, Labels: labels}
}

// typeMeta returns the type of an object of slb.k8s.ovn.org.
func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: kind}
}

// accept reports whether the API server would admit an object. Otherwise the errors become findings. Rules that exist
// in Go, too, are named by it, because those messages are shorter than the ones of the CustomResourceDefinitions.
func (c *conversion) accept(ref string, o Object) bool {
	var errs, refused field.ErrorList
	if v, ok := o.(interface{ Validate() field.ErrorList }); ok {
		errs = v.Validate()
	}
	u, err := Unstructured(o)
	if err == nil {
		_, refused, err = crd.Check(u.GetKind(), nil, u.Object)
	}
	if err != nil {
		c.add(Error, ref, "", "%v", err)
		return false
	}
	for _, e := range refused {
		// The errors of rules that compare fields are about the list or object that has them.
		if !slices.ContainsFunc(errs, func(o *field.Error) bool { return strings.HasPrefix(o.Field, e.Field) }) {
			errs = append(errs, e)
		}
	}
	known := slices.Clone(*c.findings)
	for _, e := range errs {
		// A finding about the field, or about a part of it, is the cause of the error.
		if !slices.ContainsFunc(known, func(f Finding) bool {
			return f.Severity == Error && f.Object == ref && f.Field != "" &&
				(strings.HasPrefix(f.Field, e.Field) || strings.HasPrefix(e.Field, f.Field))
		}) {
			c.add(Error, ref, e.Field, "%s", e.ErrorBody())
		}
	}
	return len(errs) == 0
}

// validSelectors reports whether all selectors are valid.
func (c *conversion) validSelectors(ref, path string, selectors []metav1.LabelSelector) bool {
	valid := true
	for i := range selectors {
		if _, err := metav1.LabelSelectorAsSelector(&selectors[i]); err != nil {
			c.add(Error, ref, path, "%v", err)
			valid = false
		}
	}
	return valid
}
