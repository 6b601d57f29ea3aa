// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxLacking is the number of fields that a note names.
const maxLacking = 3

// stored returns a manifest as the API server would store it, and the errors for which it would be refused. typed is an
// empty object of its kind, and old the present object, nil if there is none. The note is empty unless the result
// depends on how the manifest is applied.
//
// A manifest with a UID or a resourceVersion is an answer of the API server, for example to kubectl label
// --dry-run=server -o yaml: it is the whole object. Others are what kubectl apply gets: the fields that the last one
// had and this one lacks are removed. Where the last one is not known, objects of Kubernetes keep what the manifest
// lacks, because the API server and controllers have set most of that, and ours lose it, so that a plan shows what may
// be lost.
func stored(u *unstructured.Unstructured, typed any, old map[string]any, check Check) (next map[string]any, note string,
	errs []string, err error) {
	ours := u.GetAPIVersion() == v1alpha1.GroupVersion().String()
	last, hasLast := (&unstructured.Unstructured{Object: old}).GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	unknown := false
	switch {
	case old == nil, u.GetUID() != "", u.GetResourceVersion() != "":
		next = merged(nil, u.Object)
	case ours && !hasLast:
		next, unknown = u.Object, true
	default:
		// The API server sets fields of kinds of Kubernetes that manifests do not have, for example spec.ipFamilies.
		if next, err = applied(u, typed, old, last); err != nil {
			return nil, "", []string{fmt.Sprintf("annotation %s: %v", corev1.LastAppliedConfigAnnotation, err)}, nil
		}
		unknown = !hasLast
	}
	var lacks []string
	become := "stay"
	if ours {
		checked, list, err := check(u.GetKind(), old, next)
		if err != nil {
			return nil, "", nil, err
		}
		for _, e := range list {
			errs = append(errs, e.Error())
		}
		next, become = checked, "be removed"
		lacks = fieldsWithout(old, next)
	} else {
		lacks = fieldsWithout(next, u.Object)
	}
	if unknown && len(lacks) > 0 {
		note = fmt.Sprintf("%s: what the manifest lacks is taken to %s (%s): the object has no annotation %s", describe(u),
			become, world.Some(lacks, maxLacking), corev1.LastAppliedConfigAnnotation)
	}
	return next, note, errs, nil
}

// applied returns what kubectl apply makes of an object (a three-way merge). last is the manifest that was applied
// last, in JSON; empty if that is not known: then nothing is removed.
func applied(u *unstructured.Unstructured, typed any, old map[string]any, last string) (map[string]any, error) {
	next := runtime.DeepCopyJSON(u.Object)
	delete(next, "status")
	metadata, _ := next["metadata"].(map[string]any)
	if metadata["annotations"] == nil {
		metadata["annotations"] = map[string]any{}
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return merged(old, u.Object), nil // refused for it
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	text, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(text)
	modified, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	current, err := json.Marshal(old)
	if err != nil {
		return nil, fmt.Errorf("encode the present object: %w", err)
	}
	if group := u.GroupVersionKind().Group; group == "" || strings.HasSuffix(group, ".k8s.io") {
		return appliedLists(typed, []byte(last), modified, current)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(last), modified, current)
	if err != nil {
		return nil, err
	}
	var changes map[string]any
	if err := kjson.Unmarshal(patch, &changes); err != nil {
		return nil, fmt.Errorf("decode the patch: %w", err)
	}
	return merged(merged(old, changes), next), nil // The patch lacks the nulls of the manifest.
}

// appliedLists is applied for a kind of Kubernetes, whose type says by which key the entries of a list are merged: what
// others have added to spec.ports of a Service or to spec.taints of a Node stays.
func appliedLists(typed any, last, modified, current []byte) (map[string]any, error) {
	lists, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(last, modified, current, lists, true)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, lists)
	if err != nil {
		return nil, err
	}
	var next map[string]any
	if err := kjson.Unmarshal(text, &next); err != nil {
		return nil, fmt.Errorf("decode the merged object: %w", err)
	}
	return next, nil
}

// merged returns an object with the changes of another one (RFC 7396).
func merged(old, changes map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range old {
		out[key] = value
	}
	for key, value := range changes {
		nested, isObject := value.(map[string]any)
		was, wasObject := out[key].(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isObject && wasObject:
			out[key] = merged(was, nested)
		default:
			out[key] = value
		}
	}
	return out
}

// fieldsWithout returns the labels, annotations and fields of spec of an object that another one lacks, sorted, without
// those that the API server sets.
func fieldsWithout(object, other map[string]any) []string {
	of := func(content map[string]any) map[string]string {
		out := map[string]string{}
		metadata, _ := content["metadata"].(map[string]any)
		for prefix, part := range map[string]any{"label ": metadata["labels"], "annotation ": metadata["annotations"],
			"spec.": content["spec"]} {
			fields, _ := part.(map[string]any)
			for field, value := range manifest.Fields(fields) {
				out[prefix+field] = value
			}
		}
		delete(out, "annotation "+corev1.LastAppliedConfigAnnotation)
		return out
	}
	fields := of(object)
	for field := range of(other) {
		delete(fields, field)
	}
	defaults := defaultsOfKubernetes()
	maps.DeleteFunc(fields, func(field, value string) bool {
		is, set := defaults[field]
		return set && (is == "" || is == value)
	})
	return slices.Sorted(maps.Keys(fields))
}

// defaultsOfKubernetes returns what the API server and Kubernetes' controllers set in Services, Namespaces and Nodes
// that lack it; empty if the value depends on more.
func defaultsOfKubernetes() map[string]string {
	return map[string]string{"spec.clusterIP": "", "spec.clusterIPs": "", "spec.ipFamilies": "", "spec.ipFamilyPolicy": "",
		"spec.healthCheckNodePort": "", "spec.allocateLoadBalancerNodePorts": "true",
		"spec.externalTrafficPolicy": string(corev1.ServiceExternalTrafficPolicyCluster),
		"spec.internalTrafficPolicy": string(corev1.ServiceInternalTrafficPolicyCluster),
		"spec.sessionAffinity":       string(corev1.ServiceAffinityNone),
		// Of a Namespace and a Node:
		"label " + corev1.LabelMetadataName: "", "spec.finalizers": "", "spec.podCIDR": "", "spec.podCIDRs": "",
		"spec.providerID": ""}
}
