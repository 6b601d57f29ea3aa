// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Unstructured returns an object as it is sent to the API server: without status and without empty fields, so that the
// API server sets the defaults.
func Unstructured(o Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", o.GetName(), err)
	}
	delete(content, "status")
	prune(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// prune removes null values and empty objects, but not those in lists: an empty label selector selects everything.
func prune(content map[string]any) {
	for key, value := range content {
		nested, isObject := value.(map[string]any)
		if isObject {
			prune(nested)
		}
		if value == nil || isObject && len(nested) == 0 {
			delete(content, key)
		}
	}
}

// YAML returns the findings as comments, and the objects.
func (r *Result) YAML() ([]byte, error) {
	var out bytes.Buffer
	for _, f := range r.Findings {
		fmt.Fprintf(&out, "# %s\n", f)
	}
	for _, o := range r.Objects {
		u, err := Unstructured(o)
		if err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", o.GetName(), err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.Bytes(), nil
}
