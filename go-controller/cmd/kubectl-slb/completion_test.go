// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// Completion asks as the command itself would: in its cluster, for its user, in its namespace.
func TestCompletionUsesTheFlagsOfTheCommand(t *testing.T) {
	for words, want := range map[string]string{
		"drain -":                  "",
		"drain n":                  "Bearer one; as  []",
		"drain --context second n": "Bearer two; as  []",
		"drain --user=two n":       "Bearer two; as  []",
		"drain --token three n":    "Bearer three; as  []",
		"explain --as dev --as-group a,b --as-group c w": "Bearer one; as dev [a,b c]",
		"--as dev explain w":                             "Bearer one; as dev []",
		"move web --as=dev --to n":                       "Bearer one; as dev []",
		"explain --cluster other w":                      "",
		"explain --as-group dev w":                       "",
		"explain --as n":                                 "",
	} {
		s := &headers{}
		if out, err := s.run(t, completeName+" "+words); err != nil || strings.Join(s.seen, ", ") != want {
			t.Errorf("%q: error %v, requests of %q, want %q; output\n%s", words, err, s.seen, want, out)
		}
	}
}

// Services are those of the namespace of the command, and no value of a flag is completed by them.
func TestCompletionOfServices(t *testing.T) {
	for words, want := range map[string]string{
		"explain w":         "/api/v1/namespaces/default/services",
		"explain -n shop w": "/api/v1/namespaces/shop/services",
		"-n shop explain w": "/api/v1/namespaces/shop/services",
		"explain --from w":  "",
		"explain -n w":      "",
	} {
		s := &apiServer{items: map[string]string{"services": `{"metadata":{"name":"web"}},{"metadata":{"name":"db"}}`}}
		out, err := s.run(t, completeName+" "+words)
		completed := slices.Contains(strings.Split(out, "\n"), "web")
		if err != nil || completed != (want != "") || want != "" && !slices.Contains(s.read, want) {
			t.Errorf("%q: error %v, reads of %q, want %q; output\n%s", words, err, s.read, want, out)
		}
	}
}
