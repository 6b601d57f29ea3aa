// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kindsPage describes the kinds of the CustomResourceDefinitions in a directory.
func kindsPage(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString("# API reference\n\n" + generated + `
All kinds are cluster-scoped, of group ` + "`slb.k8s.ovn.org`" + ` and version ` + "`v1alpha1`" + `, and
` + "`kubectl explain`" + ` has the same text. A field without a default that is not required may be absent.
[Names and reasons](names.md) lists annotations, conditions and Events.
`)
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		if len(crd.Spec.Versions) != 1 || crd.Spec.Scope != apiextensions.ClusterScoped {
			return "", fmt.Errorf("%s: scope %s with %d versions, want a cluster-scoped kind with one", file, crd.Spec.Scope,
				len(crd.Spec.Versions))
		}
		count++
		page.WriteString("\n" + kindSection(&crd))
	}
	if count == 0 {
		return "", fmt.Errorf("%s: no CustomResourceDefinition", dir)
	}
	return page.String(), nil
}

func kindSection(crd *apiextensions.CustomResourceDefinition) string {
	version, names := crd.Spec.Versions[0], crd.Spec.Names
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n%s\n\n", names.Kind, wrap(version.Schema.OpenAPIV3Schema.Description))
	fmt.Fprintf(&out, "`kubectl get %s`", names.Plural)
	for _, short := range names.ShortNames {
		fmt.Fprintf(&out, " or `kubectl get %s`", short)
	}
	out.WriteString("\n\n")
	var rows [][]string
	for _, top := range []string{"spec", "status"} {
		if schema, ok := version.Schema.OpenAPIV3Schema.Properties[top]; ok {
			rows = append(rows, fields(top, &schema)...)
		}
	}
	return out.String() + table([]string{"Field", "Type", "Default", "Meaning"}, rows)
}

// fields returns a row for each field below path, in alphabetical order.
func fields(path string, of *apiextensions.JSONSchemaProps) (rows [][]string) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		schema := of.Properties[name]
		value := ""
		switch {
		case slices.Contains(of.Required, name):
			value = "required"
		case schema.Default != nil && string(schema.Default.Raw) != "{}":
			value = "`" + strings.Trim(string(schema.Default.Raw), `"`) + "`"
		}
		at := path + "." + name
		rows = append(rows, []string{"`" + at + "`", typeName(&schema), value, cell(schema.Description)})
		if inner := &schema; isKnown(inner) == "" {
			if inner.Items != nil && inner.Items.Schema != nil {
				at, inner = at+"[]", inner.Items.Schema
			}
			if isKnown(inner) == "" {
				rows = append(rows, fields(at, inner)...)
			}
		}
	}
	return rows
}

// isKnown returns the name of a type of Kubernetes, whose fields are described elsewhere.
func isKnown(schema *apiextensions.JSONSchemaProps) string {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { _, ok := schema.Properties[name]; return !ok })
	}
	switch {
	case has("matchLabels", "matchExpressions"):
		return "label selector"
	case has("lastTransitionTime", "reason", "message"):
		return "condition"
	}
	return ""
}

func typeName(schema *apiextensions.JSONSchemaProps) string {
	if name := isKnown(schema); name != "" {
		return name
	}
	if len(schema.Enum) > 0 {
		var values []string
		for _, v := range schema.Enum {
			values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
		}
		return strings.Join(values, ", ")
	}
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + typeName(schema.Items.Schema)
	case schema.Format == "date-time":
		return "time"
	case schema.XIntOrString:
		return "integer or string"
	}
	return schema.Type
}

// wrap breaks a paragraph into lines of at most 120 columns.
func wrap(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > 120 {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}
