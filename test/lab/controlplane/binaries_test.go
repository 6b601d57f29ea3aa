// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// binaries builds at most once per machine. The first run takes minutes.
func binaries(t *testing.T) BinDir {
	t.Helper()
	contract.Test(t)
	bin, err := Binaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func TestBinariesReportTheirVersion(t *testing.T) {
	bin := binaries(t)
	for _, target := range targets() {
		out, err := exec.CommandContext(t.Context(), bin.Path(target.program), versionArgs(target.program)...).
			CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", target.program, err, out)
		}
		want := kubernetesVersion
		if target.program == "etcd" {
			want = "3.6.8"
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("%s says version %q, want %s", target.program, out, want)
		}
	}
}

func versionArgs(program string) []string {
	if program == "kubectl" {
		return []string{"version", "--client"}
	}
	return []string{"--version"}
}

func TestConcurrentBuildsWaitForOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second lock: %v, want it to wait", err)
	}
	unlock()
	unlock, err = lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestBrokenBuildLeavesNothing(t *testing.T) {
	base := t.TempDir()
	t.Setenv("SLB_CACHE", base)
	t.Setenv("GOPROXY", "off") // With an empty module cache, no module is available.
	t.Setenv("GOMODCACHE", t.TempDir())
	if bin, err := Binaries(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("Binaries = %s, %v; want an error that names what could not be built", bin, err)
	}
	entries, err := filepath.Glob(filepath.Join(base, "*"))
	if err != nil || len(entries) != 1 || !strings.HasSuffix(entries[0], ".lock") {
		t.Errorf("left: %q, %v; want the lock file only", entries, err)
	}
}

func TestCacheDirFollowsTheEnvironment(t *testing.T) {
	base := t.TempDir()
	t.Setenv("SLB_CACHE", base)
	dir, err := cacheDir()
	if err != nil || !strings.HasPrefix(dir, base+string(os.PathSeparator)+"controlplane-") {
		t.Errorf("cache directory = %s, %v; want it below %s", dir, err, base)
	}
}
