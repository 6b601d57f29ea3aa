// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A column of kubectl get shows only the first of several values.
func TestColumnsHaveOneValue(t *testing.T) {
	crds, err := filepath.Glob("../../../../dist/manifests/crds/*.yaml")
	if err != nil || len(crds) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, path := range crds {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, column := range regexp.MustCompile(`jsonPath: .*\[\*\].*`).FindAllString(string(text), -1) {
			t.Errorf("%s: %s", filepath.Base(path), column)
		}
	}
}
