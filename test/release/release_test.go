// SPDX-License-Identifier: Apache-2.0

package release

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReleaseHasManifestsOfItsVersionAndAllModules checks the files of a release.
func TestReleaseHasManifestsOfItsVersionAndAllModules(t *testing.T) {
	run(t, "contrib/release.sh", version)
	out := filepath.Join(root, "_output/release")
	images := regexp.MustCompile(`(?m)^ *image: (.*)$`)
	for _, flavour := range []string{"central", "node", "bgp", "interconnect", "interconnect-bgp", "sdn", "openshift",
		"openshift-sdn"} {
		text, err := os.ReadFile(filepath.Join(out, "ovnkube-slb-"+flavour+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		found := images.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 || slices.ContainsFunc(found, func(m []string) bool { return m[1] != image+":"+version }) {
			t.Errorf("%s: images %v, want %s:%s", flavour, found, image, version)
		}
	}

	if _, err := os.Stat(filepath.Join(out, "ovnkube-slb-"+strings.TrimPrefix(version, "v")+".tgz")); err != nil {
		t.Error(err)
	}

	info, err := buildinfo.ReadFile(filepath.Join(root, "_output/bin/ovnkube-slb"))
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version string }
	}
	readJSON(t, filepath.Join(out, "ovnkube-slb.cdx.json"), &bill)
	have := map[string]string{}
	for _, c := range bill.Components {
		have[c.Name] = c.Version
	}
	if bill.BOMFormat != "CycloneDX" || len(info.Deps) < 50 {
		t.Errorf("format %q, %d modules in the program", bill.BOMFormat, len(info.Deps))
	}
	for _, module := range info.Deps {
		if have[module.Path] != module.Version {
			t.Errorf("module %s %s: the bill of materials has version %q", module.Path, module.Version, have[module.Path])
		}
	}

	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(sums), "\n"); lines != len(files)-1 {
		t.Errorf("checksums of %d files, want %d", lines, len(files)-1)
	}
}

func TestReleaseNeedsAVersion(t *testing.T) {
	for _, bad := range []string{"latest", "0.1.0", "v1"} {
		if got := failure(t, "contrib/release.sh", bad); !strings.Contains(got, `VERSION "`+bad+`"`) {
			t.Errorf("%s: %s", bad, got)
		}
	}
}
