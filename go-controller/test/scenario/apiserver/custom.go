// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
)

// custom is the admission of a kind that a CustomResourceDefinition defines.
type custom struct{ *crd.Kind }

// customKind returns the kind that a CustomResourceDefinition defines. It must have one version.
func customKind(manifest []byte) (*Kind, error) {
	k, err := crd.Parse(manifest)
	if err != nil {
		return nil, err
	}
	return &Kind{GroupVersionKind: k.GroupVersionKind, Resource: k.Resource, Namespaced: k.Namespaced,
		HasStatus: k.HasStatus, countsGenerations: true, admission: custom{k}}, nil
}

// decode prunes and defaults an object.
func (c custom) decode(obj map[string]any, strict bool) error {
	unknown := c.Decode(obj, strict)
	if len(unknown) == 0 {
		return nil
	}
	errs := make([]error, 0, len(unknown))
	for _, path := range unknown {
		errs = append(errs, fmt.Errorf("unknown field %q", path))
	}
	return strictError(errs)
}

// admit validates an object with its schema and rules.
func (c custom) admit(s *Server, old, obj map[string]any, status bool) error {
	errs, complete := c.Validate(old, obj, status)
	if !complete {
		errs = append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was "+
			"invalid; correct the existing errors to complete validation"))
	}
	switch {
	case len(errs) > 0:
	case old == nil:
		return s.refusal(schema.GroupResource{Group: c.Group, Resource: c.Resource})
	default:
		return nil
	}
	return apierrors.NewInvalid(c.GroupKind(), (&unstructured.Unstructured{Object: obj}).GetName(), errs)
}
