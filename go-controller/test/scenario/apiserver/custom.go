// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// custom is the admission of a kind that a CustomResourceDefinition defines.
type custom struct {
	kind       schema.GroupKind
	structural *structuralschema.Structural
	whole      validation.SchemaValidator
	status     validation.SchemaValidator
	rules      *cel.Validator
}

// customKind returns the kind that a CustomResourceDefinition defines. It must have one version.
func customKind(manifest []byte) (*Kind, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(manifest, &crd); err != nil {
		return nil, fmt.Errorf("decode a CustomResourceDefinition: %w", err)
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("%s has %d versions, want one", crd.Name, len(crd.Spec.Versions))
	}
	version := crd.Spec.Versions[0]
	var internal apiextensions.CustomResourceValidation
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema,
		&internal, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	c := &custom{kind: schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}}
	if c.structural, err = structuralschema.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	if c.whole, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	status := internal.OpenAPIV3Schema.Properties["status"]
	if c.status, _, err = validation.NewSchemaValidator(&status); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit)
	return &Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		Resource:         crd.Spec.Names.Plural, Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		HasStatus:         version.Subresources != nil && version.Subresources.Status != nil,
		countsGenerations: true, admission: c,
	}, nil
}

// decode prunes and defaults an object, in the order of the API server.
func (c *custom) decode(obj map[string]any, strict bool) error {
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, c.structural)
	defaulting.Default(obj, c.structural)
	unknown := pruning.PruneWithOptions(obj, c.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: strict})
	if len(unknown) == 0 {
		return nil
	}
	errs := make([]error, 0, len(unknown))
	for _, path := range unknown {
		errs = append(errs, fmt.Errorf("unknown field %q", path))
	}
	return strictError(errs)
}

// admit validates an object with its schema and rules. As in the API server, what an update does not change may be
// invalid.
func (c *custom) admit(_ *Server, old, obj map[string]any, status bool) error {
	var errs field.ErrorList
	var before any // A nil map in it would be taken for an old object.
	var forSchema []validation.ValidationOption
	var forRules []cel.Option
	if old != nil {
		correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: c.structural})
		forSchema = append(forSchema, validation.WithRatcheting(correlated))
		forRules = append(forRules, cel.WithRatcheting(correlated))
		before = old
	}
	switch {
	case old == nil:
		errs = validation.ValidateCustomResource(nil, obj, c.whole)
	case status:
		if now, has := obj["status"]; has {
			errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), now, old["status"], c.status)
		}
	default:
		errs = validation.ValidateCustomResourceUpdate(nil, obj, old, c.whole, forSchema...)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, obj)...)
	switch {
	case c.rules == nil:
	case slices.ContainsFunc(errs, blocksRules):
		errs = append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was "+
			"invalid; correct the existing errors to complete validation"))
	default:
		fromRules, _ := c.rules.Validate(context.Background(), nil, c.structural, obj, before, celconfig.RuntimeCELCostBudget,
			forRules...)
		errs = append(errs, fromRules...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(c.kind, (&unstructured.Unstructured{Object: obj}).GetName(), errs)
}

// blocksRules reports whether an error keeps the API server from evaluating rules, which assume that types are right
// and sizes limited.
func blocksRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}
