// SPDX-License-Identifier: Apache-2.0

package metallb

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// strictDecoder decodes the spec of an object. Fields that are unknown, and values that a field can't have, become
// errors, each with the field and the value. All other fields are decoded, so that they are judged as well.
type strictDecoder struct {
	*findings
	object string
	failed bool
}

// decode decodes a spec into a struct.
func (d *strictDecoder) decode(spec map[string]any, into any) error {
	fitting, _ := d.fitting("spec", spec, reflect.TypeOf(into).Elem())
	data, err := json.Marshal(fitting)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// fitting returns what a value of a type can have of another value, and false if that is nothing.
func (d *strictDecoder) fitting(path string, value any, t reflect.Type) (any, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case nil:
		return nil, false
	case map[string]any:
		if t.Kind() != reflect.Struct || isDuration(t) {
			break
		}
		types, out := fieldTypes(t), map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner := path + "." + key
			if types[key] == nil {
				d.refuse(inner, v[key], "is unknown to this command and has no equivalent: remove it, or write the object by hand")
			} else if fit, ok := d.fitting(inner, v[key], types[key]); ok {
				out[key] = fit
			}
		}
		return out, true
	case []any:
		if t.Kind() != reflect.Slice {
			break
		}
		out := []any{}
		for i, element := range v {
			if fit, ok := d.fitting(fmt.Sprintf("%s[%d]", path, i), element, t.Elem()); ok {
				out = append(out, fit)
			}
		}
		return out, true
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		want := wanted(t)
		if isDuration(t) {
			want = "a duration, for example 90s"
		}
		d.refuse(path, value, "is not valid: want "+want)
		return nil, false
	}
	return value, true
}

// refuse adds an error about the value of a field.
func (d *strictDecoder) refuse(path string, value any, why string) {
	const most = 100
	text, err := json.Marshal(value)
	switch {
	case err != nil || strings.Contains(strings.ToLower(path), "password"): // may be a secret
		text = []byte("the value")
	case len(text) > most:
		text = append(text[:most:most], "..."...)
	}
	d.add(Error, d.object, path, "%s %s", text, why)
	d.failed = true
}

// fieldTypes returns the types of the fields of a struct by their names in JSON.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		types[name] = f.Type
	}
	return types
}

func isDuration(t reflect.Type) bool { return t == reflect.TypeFor[metav1.Duration]() }
