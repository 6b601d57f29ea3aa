// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

const (
	root    = "../.."
	version = "v9.8.7"
	image   = "ghcr.io/ovnkube-slb/ovnkube-slb"
)

// index is an index or a manifest of the OCI image format, with the fields of both that the test reads.
type index struct {
	Manifests []struct {
		Digest   string
		Platform struct{ Architecture, OS string }
	}
	Config struct{ Digest string }
	Layers []struct{ Digest string }
}

type config struct {
	Architecture, OS string
	Config           struct {
		User       string
		Entrypoint []string
	}
}

// TestImagesHaveProgramsOfTheirArchitecture builds the images and reads what a registry would have.
func TestImagesHaveProgramsOfTheirArchitecture(t *testing.T) {
	dir := useBuildah(t)
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	run(t, "contrib/images.sh", version, "amd64", "arm64")
	layout := filepath.Join(dir, "layout")
	run(t, "buildah", "manifest", "push", "--all", image+":"+version, "oci:"+layout)

	var top, list index
	readJSON(t, filepath.Join(layout, "index.json"), &top)
	if len(top.Manifests) != 1 {
		t.Fatalf("%d images, want one list", len(top.Manifests))
	}
	readJSON(t, blob(layout, top.Manifests[0].Digest), &list)
	var got []string
	for _, m := range list.Manifests {
		got = append(got, m.Platform.Architecture)
		var one index
		readJSON(t, blob(layout, m.Digest), &one)
		var c config
		readJSON(t, blob(layout, one.Config.Digest), &c)
		if m.Platform.OS != "linux" || c.OS != "linux" || c.Architecture != m.Platform.Architecture {
			t.Errorf("an image of %s/%s is listed for %s/%s", c.OS, c.Architecture, m.Platform.OS, m.Platform.Architecture)
		}
		if c.Config.User != "65532" || !slices.Equal(c.Config.Entrypoint, []string{"/usr/bin/ovnkube-slb"}) {
			t.Errorf("%s: user %q, entrypoint %q", c.Architecture, c.Config.User, c.Config.Entrypoint)
		}
		files := map[string][]byte{}
		for _, l := range one.Layers {
			unpack(t, blob(layout, l.Digest), files)
		}
		program, err := elf.NewFile(bytes.NewReader(files["usr/bin/ovnkube-slb"]))
		if err != nil {
			t.Fatalf("%s: %v", c.Architecture, err)
		}
		if program.Machine != machines[c.Architecture] || program.Section(".interp") != nil {
			t.Errorf("%s: a program for %s, dynamic %t", c.Architecture, program.Machine, program.Section(".interp") != nil)
		}
		if !bytes.Contains(files["usr/bin/ovnkube-slb"], []byte(version)) {
			t.Errorf("%s: the program does not contain version %s", c.Architecture, version)
		}
		if len(files) != 2 || len(files["etc/ssl/certs/ca-certificates.crt"]) == 0 {
			t.Errorf("%s: %d files, want the program and the certificates", c.Architecture, len(files))
		}
	}
	if slices.Sort(got); !slices.Equal(got, []string{"amd64", "arm64"}) {
		t.Errorf("images for %v", got)
	}
}

// useBuildah lets contrib/images.sh use buildah with a storage of its own, and returns a directory.
func useBuildah(t *testing.T) string {
	t.Helper()
	contract.Test(t, "buildah")
	dir := t.TempDir()
	storage := filepath.Join(dir, "storage.conf")
	text := fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(dir, "graph"),
		filepath.Join(dir, "run"))
	if err := os.WriteFile(storage, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONTAINERS_STORAGE_CONF", storage)
	t.Setenv("CONTAINER_TOOL", "buildah")
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	return dir
}

func TestImagesHaveVersionsAsTags(t *testing.T) {
	if got := failure(t, "contrib/images.sh", "latest"); !strings.Contains(got, `VERSION "latest"`) {
		t.Errorf("latest: %s", got)
	}
}

// failure runs a command that must fail, and returns its output.
func failure(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s %s succeeds", name, strings.Join(args, " "))
	}
	return string(out)
}

// run runs a command in the root of the repository and returns its output.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	contract.Test(t)
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func blob(layout, digest string) string {
	return filepath.Join(layout, "blobs", strings.ReplaceAll(digest, ":", "/"))
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// unpack adds the regular files of a layer.
func unpack(t *testing.T, file string, files map[string][]byte) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	untar(t, unzipped, files)
}

// untar adds the regular files of an archive.
func untar(t *testing.T, from io.Reader, files map[string][]byte) {
	t.Helper()
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}
