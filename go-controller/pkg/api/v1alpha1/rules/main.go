// SPDX-License-Identifier: Apache-2.0

// Command rules writes the CEL rules that compare address ranges: into the CRD of
// IPAddressPool, after controller-gen generated it, and into the ValidatingAdmissionPolicy
// that compares pools with each other. Markers in the Go types cannot hold them:
// CEL has no functions, so the expressions are composed here. It also writes the CRDs for API servers that refuse rules
// with addresses.
//
// Usage: rules CRDS POLICY.yaml OLDER-CRDS.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments: want CRDS POLICY.yaml OLDER-CRDS", len(args))
	}
	crd := filepath.Join(args[0], "slb.k8s.ovn.org_ipaddresspools.yaml")
	if err := addToCRD(crd); err != nil {
		return fmt.Errorf("rules of the CRD in %s: %w", crd, err)
	}
	if err := writePolicy(args[1]); err != nil {
		return fmt.Errorf("policy in %s: %w", args[1], err)
	}
	if err := writeOlder(args[0], args[2]); err != nil {
		return fmt.Errorf("CRDs for older API servers in %s: %w", args[2], err)
	}
	return nil
}

// addToCRD appends to the rules that controller-gen wrote, in place.
func addToCRD(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	spec, err := schemaAt(crd, "spec")
	if err != nil {
		return err
	}
	rules, _ := spec[validations].([]any)
	for _, r := range poolRules() {
		rules = append(rules, map[string]any{
			"rule": r.rule, "fieldPath": r.field, "messageExpression": r.message, "message": r.fallback,
		})
	}
	spec[validations] = rules
	return write(path, crd)
}

// schemaAt returns the schema of a property of the only version's objects.
func schemaAt(crd map[string]any, property string) (map[string]any, error) {
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) != 1 {
		return nil, fmt.Errorf("%d versions: want 1", len(versions))
	}
	at := versions[0]
	for _, name := range []string{"schema", "openAPIV3Schema", "properties", property} {
		object, _ := at.(map[string]any)
		at = object[name]
	}
	schema, ok := at.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no schema of property %s", property)
	}
	return schema, nil
}

func write(path string, documents ...any) error {
	var out bytes.Buffer
	for _, d := range documents {
		text, err := yaml.Marshal(d)
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
