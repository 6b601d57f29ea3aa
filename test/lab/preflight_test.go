// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A fresh machine has only the programs that contrib/setup.sh installs. Only there would a required program that the
// script does not install be missing.
func TestSetupScriptInstallsEachRequirement(t *testing.T) {
	script, err := os.ReadFile("../../contrib/setup.sh")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)\npackages='([^']*)'`).FindSubmatch(script)
	if list == nil {
		t.Fatal("contrib/setup.sh has no list of packages")
	}
	packages := strings.Fields(string(list[1]))
	for _, r := range requirements() {
		if !slices.Contains(packages, r.pkg) {
			t.Errorf("%s is required, and contrib/setup.sh does not install its package %s", r.path, r.pkg)
		}
	}
}
