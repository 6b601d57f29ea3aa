// SPDX-License-Identifier: Apache-2.0

package crd

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// Kind is a kind that a CustomResourceDefinition defines.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its name in paths, as in "bgppeers".
	Resource   string
	Namespaced bool
	// HasStatus reports whether the kind has the subresource status.
	HasStatus bool

	structural *structuralschema.Structural
	whole      validation.SchemaValidator
	status     validation.SchemaValidator
	rules      *cel.Validator
}

// Parse returns the kind that a CustomResourceDefinition defines. It must have one version.
func Parse(manifest []byte) (*Kind, error) {
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
	k := &Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind},
		Resource:         crd.Spec.Names.Plural, Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		HasStatus: version.Subresources != nil && version.Subresources.Status != nil,
	}
	if k.structural, err = structuralschema.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	if k.whole, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	status := internal.OpenAPIV3Schema.Properties["status"]
	if k.status, _, err = validation.NewSchemaValidator(&status); err != nil {
		return nil, fmt.Errorf("%s: %w", crd.Name, err)
	}
	k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	return k, nil
}

// Decode prunes and defaults an object in place, in the order of the API server. With strict, it returns the paths of
// the fields that the kind does not have.
func (k *Kind) Decode(obj map[string]any, strict bool) (unknown []string) {
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.structural)
	defaulting.Default(obj, k.structural)
	return pruning.PruneWithOptions(obj, k.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: strict})
}

// Validate validates an object with its schema and rules. As in the API server, what an update does not change may be
// invalid. old is nil for a new object. status says that its status is written. complete reports whether the rules were
// evaluated, which some errors of the schema prevent.
func (k *Kind) Validate(old, obj map[string]any, status bool) (errs field.ErrorList, complete bool) {
	var before any // A nil map in it would be taken for an old object.
	var forSchema []validation.ValidationOption
	var forRules []cel.Option
	if old != nil {
		correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: k.structural})
		forSchema = append(forSchema, validation.WithRatcheting(correlated))
		forRules = append(forRules, cel.WithRatcheting(correlated))
		before = old
	}
	switch {
	case old == nil:
		errs = validation.ValidateCustomResource(nil, obj, k.whole)
	case status:
		if now, has := obj["status"]; has {
			errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), now, old["status"], k.status)
		}
	default:
		errs = validation.ValidateCustomResourceUpdate(nil, obj, old, k.whole, forSchema...)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, obj)...)
	if k.rules == nil {
		return errs, true
	}
	if slices.ContainsFunc(errs, blocksRules) {
		return errs, false
	}
	fromRules, _ := k.rules.Validate(context.Background(), nil, k.structural, obj, before, celconfig.RuntimeCELCostBudget,
		forRules...)
	return append(errs, fromRules...), true
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
