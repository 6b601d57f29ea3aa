// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FieldChange is a field whose value changes. From and To are empty if the field is unset.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// String returns the change for readers.
func (c FieldChange) String() string {
	return fmt.Sprintf("%s: %s, was %s", c.Field, cmp.Or(c.To, "unset"), cmp.Or(c.From, "unset"))
}

// Fields returns the values of the fields of an object by their paths, for example failover.multiplier. A list is one
// value, in JSON.
func Fields(content map[string]any) map[string]string {
	out := map[string]string{}
	addFields(out, "", content)
	return out
}

func addFields(out map[string]string, path string, content map[string]any) {
	for key, value := range content {
		switch v := value.(type) {
		case map[string]any:
			addFields(out, path+key+".", v)
		case []any:
			if text, err := json.Marshal(v); err == nil {
				out[path+key] = string(text)
			}
		default:
			out[path+key] = fmt.Sprint(v)
		}
	}
}

// hidden stands for a password.
const hidden = "(not shown)"

// Changed returns the fields whose values differ, sorted by their paths. It does not contain the values of passwords.
func Changed(before, after map[string]string) []FieldChange {
	var list []FieldChange
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if before[field] == after[field] {
			continue
		}
		c := FieldChange{field, before[field], after[field]}
		if name := field[strings.LastIndex(field, ".")+1:]; name == "password" {
			for _, value := range []*string{&c.From, &c.To} {
				if *value != "" {
					*value = hidden
				}
			}
		}
		list = append(list, c)
	}
	return list
}
