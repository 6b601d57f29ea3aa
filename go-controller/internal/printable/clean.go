// SPDX-License-Identifier: Apache-2.0

package printable

import "reflect"

// Clean replaces each string to which a pointer leads by its Line: in structs, slices, maps and other pointers. Keys of
// maps and unexported fields stay as they are.
func Clean(pointer any) { clean(reflect.ValueOf(pointer)) }

func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(Line(v.String()))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				clean(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			clean(element)
			v.SetMapIndex(key, element)
		}
	default: // numbers and the like
	}
}
