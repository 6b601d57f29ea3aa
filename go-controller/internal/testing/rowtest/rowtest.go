// SPDX-License-Identifier: Apache-2.0

// Package rowtest prints rows of OVN's databases for tests.
package rowtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// Line returns a row as one line: its table and ID, its columns except external_ids, and its parent.
func Line(r rows.Row) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s:", r.Table, strings.TrimPrefix(r.ID, rows.Controller+":"))
	for _, column := range slices.Sorted(maps.Keys(r.Columns)) {
		if column != "external_ids" {
			fmt.Fprintf(&out, " %s=%s", column, Value(r.Columns[column]))
		}
	}
	if r.Parent.Name != "" {
		fmt.Fprintf(&out, " in %s of %s", r.Parent.Column, r.Parent.Name)
	}
	return out.String()
}

// Value returns the value of a column: maps by their keys, references by the IDs of their rows, and a dash for an
// optional value that is absent.
func Value(value any) string {
	switch v := value.(type) {
	case *string:
		if v == nil {
			return "-"
		}
		return *v
	case *int:
		if v == nil {
			return "-"
		}
		return fmt.Sprint(*v)
	case *bool:
		return fmt.Sprint(*v)
	case map[string]string:
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, k+"="+v[k])
		}
		return "{" + strings.Join(pairs, " ") + "}"
	case []rows.Ref:
		return "[" + Value(v[0]) + "]"
	case rows.Ref:
		return "@" + strings.TrimPrefix(v.ID, rows.Controller+":")
	case nil:
		return "-"
	}
	return fmt.Sprint(value)
}
