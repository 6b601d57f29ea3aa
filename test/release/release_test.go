// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReleaseHasWhatInstallsIt checks the files of a release for one architecture.
func TestReleaseHasWhatInstallsIt(t *testing.T) {
	useBuildah(t)
	t.Setenv("ARCHITECTURES", "amd64")
	t.Setenv("PLATFORMS", "linux-amd64")
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
	checkImage(t, filepath.Join(out, "ovnkube-slb-"+version+"-linux-amd64.tar"))
	checkPlugin(t, out)

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

// checkImage checks an archive as `docker load` and `ctr images import` read it: not compressed, with a list of images.
func checkImage(t *testing.T, archive string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string][]byte{}
	untar(t, f, files)
	var images []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil {
		t.Fatal(err)
	}
	if len(images) != 1 || !slices.Equal(images[0].RepoTags, []string{image + ":" + version}) {
		t.Fatalf("images of the archive: %+v", images)
	}
	for _, name := range append(images[0].Layers, images[0].Config) {
		if len(files[name]) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
}

// checkPlugin checks the archive of the plugin, and that the manifest for krew has its checksum.
func checkPlugin(t *testing.T, out string) {
	t.Helper()
	archive := filepath.Join(out, "kubectl-slb-linux-amd64.tar.gz")
	files := map[string][]byte{}
	unpack(t, archive, files)
	program := filepath.Join(t.TempDir(), "kubectl-slb")
	if err := os.WriteFile(program, files["kubectl-slb"], 0o700); err != nil {
		t.Fatal(err)
	}
	if got := run(t, program, "--version"); !strings.Contains(got, version) {
		t.Errorf("the plugin has version %s, want %s", got, version)
	}
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(out, "slb.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("sha256: %x", sha256.Sum256(text)); !strings.Contains(string(manifest), sum) {
		t.Errorf("the manifest for krew has no %s", sum)
	}
}

func TestReleaseNeedsAVersion(t *testing.T) {
	for _, bad := range []string{"latest", "0.1.0", "v1"} {
		if got := failure(t, "contrib/release.sh", bad); !strings.Contains(got, `VERSION "`+bad+`"`) {
			t.Errorf("%s: %s", bad, got)
		}
	}
}
