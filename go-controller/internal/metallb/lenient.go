// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// lenientDecoder decodes YAML value by value. A value that a field can't have becomes an error about the value, and
// everything else is decoded. Text is what the YAML contains, also if it looks like a number, as for MetalLB.
type lenientDecoder struct {
	*findings
	in string
}

// decode decodes YAML without cyclic aliases into a struct.
func (d *lenientDecoder) decode(text string, into any) error {
	var document goyaml.Node
	if err := goyaml.Unmarshal([]byte(text), &document); err != nil || len(document.Content) == 0 {
		return err
	}
	values, _ := d.fitting("", document.Content[0], reflect.TypeOf(into).Elem())
	data, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// fitting returns what a value of a type can have of a node. It returns false if that is nothing, as of null and of
// empty strings, which stand for defaults.
func (d *lenientDecoder) fitting(path string, node *goyaml.Node, t reflect.Type) (any, bool) {
	for node.Kind == goyaml.AliasNode {
		node = node.Alias
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if node.Tag == "!!null" {
		return nil, false
	}
	switch kind := t.Kind(); {
	case kind == reflect.Struct && node.Kind == goyaml.MappingNode:
		return d.fields(path, node, t), true
	case kind == reflect.Map && node.Kind == goyaml.MappingNode:
		out := map[string]any{}
		values := entries(node)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if v, ok := d.fitting(path+"."+key, values[key], t.Elem()); ok {
				out[key] = v
			}
		}
		return out, true
	case kind == reflect.Slice && node.Kind == goyaml.SequenceNode:
		out := []any{}
		for i, element := range node.Content {
			if v, ok := d.fitting(fmt.Sprintf("%s[%d]", path, i), element, t.Elem()); ok {
				out = append(out, v)
			}
		}
		return out, true
	case kind == reflect.String && node.Kind == goyaml.ScalarNode:
		return node.Value, true
	case node.Kind == goyaml.ScalarNode && node.Value == "":
		return nil, false
	case node.Kind == goyaml.ScalarNode:
		value := reflect.New(t)
		plain := goyaml.Node{Kind: goyaml.ScalarNode, Value: node.Value} // also if it is quoted
		fraction := plain.ShortTag() == "!!float"                        // which would be rounded
		if !fraction && plain.Decode(value.Interface()) == nil {
			return value.Elem().Interface(), true
		}
	}
	found := node.Value
	if node.Kind != goyaml.ScalarNode {
		found = "an object"
		if node.Kind == goyaml.SequenceNode {
			found = "a list"
		}
	}
	d.add(Error, d.in, path, "%s: want %s", found, wanted(t))
	return nil, false
}

func (d *lenientDecoder) fields(path string, node *goyaml.Node, t reflect.Type) map[string]any {
	types, out, values := fieldTypes(t), map[string]any{}, entries(node)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		inner := strings.TrimPrefix(path+"."+key, ".")
		field, known := types[key]
		if !known {
			d.add(Error, d.in, inner, "is unknown to this command and has no equivalent")
			continue
		}
		if v, ok := d.fitting(inner, values[key], field); ok {
			out[key] = v
		}
	}
	return out
}

// entries returns the values of a mapping by key, with those of the mappings that it merges (the key "<<").
func entries(node *goyaml.Node) map[string]*goyaml.Node {
	out := map[string]*goyaml.Node{}
	merge := func(from *goyaml.Node) {
		for from.Kind == goyaml.AliasNode {
			from = from.Alias
		}
		if from.Kind != goyaml.MappingNode {
			return
		}
		for key, value := range entries(from) {
			if out[key] == nil {
				out[key] = value
			}
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i]; key.Tag != "!!merge" {
			out[key.Value] = node.Content[i+1]
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Tag != "!!merge" {
			continue
		}
		if from := node.Content[i+1]; from.Kind == goyaml.SequenceNode {
			for _, f := range from.Content {
				merge(f)
			}
		} else {
			merge(from)
		}
	}
	return out
}

// wanted describes a type.
func wanted(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the others are integers
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	}
	return fmt.Sprintf("an integer of %d bits", t.Bits())
}
