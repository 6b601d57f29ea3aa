// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ovnkube-slb/ovnkube-slb/dist"
)

// kinds returns the kinds of dist/manifests/crds by name. It takes time to compile their rules.
//
//nolint:gochecknoglobals // a constant
var kinds = sync.OnceValues(func() (map[string]*Kind, error) {
	files, err := fs.Glob(dist.CRDs, "manifests/crds/*.yaml")
	if err != nil {
		return nil, err
	}
	out := map[string]*Kind{}
	for _, file := range files {
		manifest, err := dist.CRDs.ReadFile(file)
		if err != nil {
			return nil, err
		}
		k, err := Parse(manifest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[k.Kind] = k
	}
	return out, nil
})

// Check returns a manifest of a kind of slb.k8s.ovn.org as the API server would store it, and the errors for which the
// API server would refuse it. old is the present object, nil if there is none. A status in the manifest has no effect.
// It is an error if there is no such kind.
func Check(kind string, old, manifest map[string]any) (map[string]any, field.ErrorList, error) {
	all, err := kinds()
	if err != nil {
		return nil, nil, err
	}
	k := all[kind]
	if k == nil {
		return nil, nil, fmt.Errorf("%s is no kind of slb.k8s.ovn.org", kind)
	}
	obj, errs := k.check(old, manifest)
	return obj, errs, nil
}

func (k *Kind) check(old, manifest map[string]any) (map[string]any, field.ErrorList) {
	obj := runtime.DeepCopyJSON(manifest)
	if k.HasStatus {
		delete(obj, "status")
		if old != nil && old["status"] != nil {
			obj["status"] = runtime.DeepCopyJSONValue(old["status"])
		}
	}
	path := field.NewPath("metadata")
	meta, found, err := objectmeta.GetObjectMeta(obj, false)
	switch {
	case err != nil:
		return obj, field.ErrorList{field.Invalid(path, nil, err.Error())}
	case !found:
		meta = &metav1.ObjectMeta{}
	}
	if meta.Name == "" {
		return obj, field.ErrorList{field.Required(path.Child("name"), "")}
	}
	if !k.Namespaced {
		meta.Namespace = "" // The API server ignores it.
		if metadata, ok := obj["metadata"].(map[string]any); ok {
			delete(metadata, "namespace")
		}
	}
	errs := apivalidation.ValidateObjectMeta(meta, k.Namespaced, apivalidation.NameIsDNSSubdomain, path)
	for _, name := range k.Decode(obj, true) {
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: name, Detail: "unknown field"})
	}
	invalid, _ := k.Validate(old, obj, false)
	return obj, append(errs, invalid...)
}
