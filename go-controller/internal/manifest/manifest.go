// SPDX-License-Identifier: Apache-2.0

// Package manifest reads manifests as kubectl does, and compares objects field by field.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
)

// Parse reads YAML documents or JSON values. The items of lists are returned one by one. Documents without content, for
// example comments, are no objects. Integers stay integers.
func Parse(data []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var out []*unstructured.Unstructured
	for document := 1; ; document++ {
		var raw json.RawMessage
		var content map[string]any
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil && len(raw) > 0 {
			err = kjson.UnmarshalCaseSensitivePreserveInts(raw, &content)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", document, err)
		}
		if len(content) == 0 {
			continue
		}
		u := &unstructured.Unstructured{Object: content}
		if !u.IsList() {
			out = append(out, u)
			continue
		}
		items, _ := content["items"].([]any)
		for i, item := range items {
			object, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("document %d: items[%d] is not an object", document, i)
			}
			out = append(out, &unstructured.Unstructured{Object: object})
		}
	}
}
