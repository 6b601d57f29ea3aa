// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// validations is the key of a schema's rules.
const validations = "x-kubernetes-validations"

// newer is a call of the CEL libraries that API servers accept in CRDs from Kubernetes 1.31 on: they were introduced
// in 1.30, and a new rule must compile in the version before as well.
var newer = regexp.MustCompile(`\b(isIP|isCIDR|ip|cidr)\(`)

// writeOlder writes the CRDs of a directory as API servers from Kubernetes 1.27 on accept them, without the rules that
// older ones refuse. What these rules refuse in pools and L2Domains, the controller reports in condition Accepted. No
// flavour for these API servers has BGP.
func writeOlder(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "slb.*.yaml"))
	if err != nil {
		return err
	}
	dropped := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		n, err := dropRules(crd)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		dropped += n
		if err := write(filepath.Join(to, filepath.Base(file)), crd); err != nil {
			return err
		}
	}
	if dropped == 0 {
		return fmt.Errorf("no rule of the %d CRDs in %s uses %s: these CRDs have no use", len(files), from, newer)
	}
	return nil
}

// dropRules removes the rules that use newer libraries from all schemas within a value, and returns their number.
func dropRules(within any) (int, error) {
	dropped := 0
	switch v := within.(type) {
	case []any:
		for _, element := range v {
			n, err := dropRules(element)
			if err != nil {
				return 0, err
			}
			dropped += n
		}
	case map[string]any:
		all, _ := v[validations].([]any)
		kept := make([]any, 0, len(all))
		for _, r := range all {
			keep, err := keeps(r)
			if err != nil {
				return 0, err
			}
			if keep {
				kept = append(kept, r)
			}
		}
		dropped = len(all) - len(kept)
		delete(v, validations)
		n, err := dropRules(slices.Collect(maps.Values(v)))
		if err != nil {
			return 0, err
		}
		dropped += n
		if len(kept) > 0 {
			v[validations] = kept
		}
	}
	return dropped, nil
}

// keeps reports whether API servers from Kubernetes 1.27 on accept a rule. fieldPath and reason are of 1.28,
// optionalOldSelf is of 1.29.
func keeps(rule any) (bool, error) {
	fields, _ := rule.(map[string]any)
	for _, name := range []string{"rule", "messageExpression"} {
		if text, _ := fields[name].(string); newer.MatchString(text) {
			return false, nil
		}
	}
	for _, name := range []string{"fieldPath", "reason", "optionalOldSelf"} {
		if fields[name] != nil {
			return false, fmt.Errorf("rule %q: field %s is unknown to Kubernetes 1.27", fields["rule"], name)
		}
	}
	return true, nil
}
