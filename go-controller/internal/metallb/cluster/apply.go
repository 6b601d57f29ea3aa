// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

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

// Check returns the errors for which the API server would refuse objects, in the order of the objects. Nothing is
// written.
func Check(ctx context.Context, client dynamic.Interface, objects []metallb.Object) []error {
	var errs []error
	for _, o := range objects {
		gvr, name := resourceOf(o)
		u, err := metallb.Unstructured(o)
		if err == nil {
			_, err = client.Resource(gvr).Apply(ctx, o.GetName(), u, metav1.ApplyOptions{FieldManager: FieldManager,
				DryRun: []string{metav1.DryRunAll}})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errs
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
	case err != nil:
		return "", fmt.Errorf("apply %s: %w", name, err)
	case absent:
		return name + " created", nil
	case before.GetGeneration() != after.GetGeneration() || before.GetResourceVersion() != after.GetResourceVersion():
		return name + " configured", nil
	}
	return name + " unchanged", nil
}
