// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// FieldManager is the owner of the fields that an import sets.
const FieldManager = "kubectl-slb-import"

// plural returns the resource of a kind.
func plural(kind string) string {
	name := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(name, "y"); ok {
		return stem + "ies"
	}
	return name + "s"
}

// Check returns what the API server would do with objects, in their order: errors are about those that it would refuse,
// warnings about those of the cluster (existing) that would change. Nothing is written.
func Check(ctx context.Context, client dynamic.Interface, objects []metallb.Object,
	existing []*unstructured.Unstructured) []metallb.Finding {
	return check(ctx, client, objects, existing, func(metallb.Object, *unstructured.Unstructured) error { return nil })
}

// check is Check, and calls a function with the objects that exist, and what would become of them.
func check(ctx context.Context, client dynamic.Interface, objects []metallb.Object,
	existing []*unstructured.Unstructured, exists func(o metallb.Object, after *unstructured.Unstructured) error,
) []metallb.Finding {
	var findings []metallb.Finding
	for _, o := range objects {
		gvr, name := resourceOf(o)
		before, after := find(existing, o), &unstructured.Unstructured{}
		wanted, err := metallb.Unstructured(o)
		if err == nil {
			after, err = client.Resource(gvr).Apply(ctx, o.GetName(), wanted, metav1.ApplyOptions{FieldManager: FieldManager,
				DryRun: []string{metav1.DryRunAll}})
		}
		switch {
		case isFieldConflict(err):
			changes := ""
			if before != nil {
				set, old := specFields(wanted), specFields(before)
				maps.DeleteFunc(old, func(field, _ string) bool { return set[field] == "" }) // stay
				changes = ". The import has " + changed(old, set)
			}
			findings = append(findings, metallb.Finding{Severity: metallb.Error, Object: name,
				Message: conflict(err) + changes})
		case err != nil:
			findings = append(findings, metallb.Finding{Severity: metallb.Error, Object: name, Message: err.Error()})
		case before != nil:
			if changes := changed(specFields(before), specFields(after)); changes != "" {
				findings = append(findings, metallb.Finding{Severity: metallb.Warning, Object: name,
					Message: "exists in the cluster, and the import changes it: " + changes})
			}
			if err := exists(o, after); err != nil {
				findings = append(findings, metallb.Finding{Severity: metallb.Error, Object: name, Message: err.Error()})
			}
		}
	}
	return findings
}

// MergeExisting is Check for the objects that exist in the cluster, and gives them the spec that they would have: an
// import adds to lists of names.
func MergeExisting(ctx context.Context, client dynamic.Interface, objects []metallb.Object,
	existing []*unstructured.Unstructured) []metallb.Finding {
	present := slices.DeleteFunc(slices.Clone(objects), func(o metallb.Object) bool { return find(existing, o) == nil })
	return check(ctx, client, present, existing, func(o metallb.Object, after *unstructured.Unstructured) error {
		merged := map[string]any{"apiVersion": after.GetAPIVersion(), "kind": after.GetKind(),
			"metadata": map[string]any{"name": after.GetName()}, "spec": after.Object["spec"]}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, o); err != nil {
			return fmt.Errorf("read what the import would make of it: %w", err)
		}
		return nil
	})
}

// find returns the object of the cluster with the kind and the name of another one; nil if there is none.
func find(existing []*unstructured.Unstructured, o metallb.Object) *unstructured.Unstructured {
	at := slices.IndexFunc(existing, func(e *unstructured.Unstructured) bool {
		return e.GetKind() == o.GetObjectKind().GroupVersionKind().Kind && e.GetName() == o.GetName()
	})
	if at < 0 {
		return nil
	}
	return existing[at]
}

// specFields returns the fields of the spec of an object.
func specFields(u *unstructured.Unstructured) map[string]string {
	return manifest.Fields(map[string]any{"spec": u.Object["spec"]})
}

// changed names the fields with other values, and the values unless they are secrets.
func changed(before, after map[string]string) string {
	var texts []string
	for _, c := range manifest.Changed(before, after) {
		text := c.String()
		if c.Field == "spec.password" {
			text = c.Field
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// isFieldConflict reports whether another field manager keeps an object from being applied.
func isFieldConflict(err error) bool {
	return apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// conflict returns which fields of an object belong to which field managers, and what to do.
func conflict(err error) string {
	var fields []string
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			fields = append(fields, strings.TrimPrefix(c.Field, ".")+" ("+c.Message+")")
		}
	}
	return fmt.Sprintf("exists in the cluster with fields that other field managers have set, and that the import does "+
		"not overwrite: %s. To overwrite them, apply the output of --dry-run with kubectl apply --server-side "+
		"--force-conflicts --field-manager=%s -f FILE. To keep them, remove the object from that output",
		strings.Join(fields, ", "), FieldManager)
}

// resourceOf returns the resource of an object, and its name with the full resource.
func resourceOf(o metallb.Object) (schema.GroupVersionResource, string) {
	gvr := v1alpha1.GroupVersion().WithResource(plural(o.GetObjectKind().GroupVersionKind().Kind))
	return gvr, gvr.GroupResource().String() + "/" + o.GetName()
}

// Apply creates or updates an object. It returns what kubectl apply prints: the full resource, the name, and whether it
// was created, configured or unchanged.
func Apply(ctx context.Context, client dynamic.Interface, o metallb.Object) (string, error) {
	gvr, name := resourceOf(o)
	u, err := metallb.Unstructured(o)
	if err != nil {
		return "", err
	}
	before, err := client.Resource(gvr).Get(ctx, o.GetName(), metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return "", fmt.Errorf("get %s: %w", name, err)
	}
	after, err := client.Resource(gvr).Apply(ctx, o.GetName(), u, metav1.ApplyOptions{FieldManager: FieldManager})
	switch {
	case isFieldConflict(err):
		return "", fmt.Errorf("%s %s", name, conflict(err))
	case err != nil:
		return "", fmt.Errorf("apply %s: %w", name, err)
	case absent:
		return name + " created", nil
	case before.GetGeneration() != after.GetGeneration() || before.GetResourceVersion() != after.GetResourceVersion():
		return name + " configured", nil
	}
	return name + " unchanged", nil
}
