// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/cache"
)

const (
	kubernetesMajor, kubernetesMinor = "1", "36"
	kubernetesVersion                = "v1.36.3"

	// progressEvery is the interval of progress messages during a build. Without them, a minute of silence looks like a
	// hang.
	progressEvery = 10 * time.Second
	lockPoll      = 200 * time.Millisecond
)

// BinDir is the directory with etcd, kube-apiserver, kube-controller-manager and kubectl.
type BinDir string

// Path returns the path of the program.
func (b BinDir) Path(program string) string { return filepath.Join(string(b), program) }

//go:embed build/go.mod.txt build/go.sum.txt
var module embed.FS

// target is a program to build. The main package of etcd is the root of its module, so the go command would name the
// program "server".
type target struct{ program, pkg string }

func targets() []target {
	return []target{
		{"etcd", "go.etcd.io/etcd/server/v3"},
		{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
		{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	}
}

// buildFlags returns the build flags. They are part of the cache key because other flags produce other binaries.
func buildFlags() []string {
	ldflags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		ldflags = append(ldflags,
			"-X "+pkg+".gitVersion="+kubernetesVersion,
			"-X "+pkg+".gitMajor="+kubernetesMajor,
			"-X "+pkg+".gitMinor="+kubernetesMinor,
			"-X "+pkg+".gitTreeState=clean",
		)
	}
	return []string{"-trimpath", "-ldflags", strings.Join(ldflags, " ")}
}

// Binaries returns the directory with the programs. If this machine does not have them yet, Binaries builds them, which
// takes 5 to 7 minutes on two cores and about 4 GB in the caches of the go command. Progress receives a line at least
// every 10 s. The directory is controlplane-<hash of sources and flags> in [cache.Dir].
func Binaries(ctx context.Context, progress io.Writer) (BinDir, error) {
	if progress == nil {
		progress = io.Discard
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	if present(dir) {
		return BinDir(dir), nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("control plane cache: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock", progress)
	if err != nil {
		return "", fmt.Errorf("control plane cache: %w", err)
	}
	defer unlock()
	if present(dir) { // Another process built them in the meantime.
		return BinDir(dir), nil
	}
	if err := build(ctx, dir, progress); err != nil {
		return "", fmt.Errorf("build the control plane into %s: %w", dir, err)
	}
	return BinDir(dir), nil
}

func cacheDir() (string, error) {
	base, err := cache.Dir()
	if err != nil {
		return "", fmt.Errorf("control plane: %w", err)
	}
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := module.ReadFile("build/" + name + ".txt")
		if err != nil {
			return "", err
		}
		hash.Write(text)
	}
	fmt.Fprint(hash, buildFlags(), targets(), runtime.GOOS, runtime.GOARCH)
	return filepath.Join(base, "controlplane-"+hex.EncodeToString(hash.Sum(nil))[:12]), nil
}

// present reports whether the directory exists. It is created complete by one rename, so its content is not checked.
func present(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// lock takes the lock of path. The kernel releases it if this process dies.
func lock(ctx context.Context, path string, progress io.Writer) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	poll, say := time.NewTicker(lockPoll), time.NewTicker(progressEvery)
	defer poll.Stop()
	defer say.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, ctx.Err()), file.Close())
		case <-say.C:
			fmt.Fprintln(progress, "control plane: another process builds it, waiting")
		case <-poll.C:
		}
	}
}

// build creates a complete directory or none.
func build(ctx context.Context, dir string, progress io.Writer) error {
	stale, err := filepath.Glob(dir + ".tmp*") // Under the lock, these belong to builds that were killed.
	if err != nil {
		return err
	}
	for _, path := range stale {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	source, out := filepath.Join(tmp, "source"), filepath.Join(tmp, "bin")
	if err := writeModule(source); err != nil {
		return err
	}
	if err := compile(ctx, source, out, progress); err != nil {
		return err
	}
	if err := os.Chmod(out, 0o755); err != nil {
		return err
	}
	return os.Rename(out, dir)
}

func writeModule(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := module.ReadFile("build/" + name + ".txt")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compile builds one program after the other, smallest first. Later builds reuse from the build cache what earlier ones
// compiled.
func compile(ctx context.Context, source, out string, progress io.Writer) error {
	began := time.Now()
	fmt.Fprintf(progress, "control plane: building Kubernetes %s and etcd, once on this machine: about 5-7 minutes on 2 "+
		"cores\n", kubernetesVersion)
	for _, t := range targets() {
		cmd := goCommand(ctx, source, append(append([]string{"build", "-v"}, buildFlags()...), "-o",
			filepath.Join(out, t.program), t.pkg)...)
		if err := follow(cmd, t.program, began, progress); err != nil {
			return fmt.Errorf("%s: %w", t.program, err)
		}
	}
	fmt.Fprintf(progress, "control plane: built in %s\n", since(began))
	return nil
}

// goCommand returns a go command that ignores the caller's workspace and flags, so that the result depends only on the
// module.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	return cmd
}

// follow runs a go build -v, which prints the name of each compiled package on standard error, and reports progress.
func follow(cmd *exec.Cmd, program string, began time.Time, progress io.Writer) error {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var compiled atomic.Int64
	done := make(chan struct{})
	var said []string // Lines that are not package paths are messages.
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if line := lines.Text(); strings.ContainsAny(line, " \t#") {
				said = append(said, line)
			} else {
				compiled.Add(1)
			}
		}
	}()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(progress, "control plane: %s: %s, %d packages compiled\n", since(began), program, compiled.Load())
			continue
		case <-done:
		}
		break
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(said, "\n"))
	}
	fmt.Fprintf(progress, "control plane: %s: %s done\n", since(began), program)
	return nil
}

func since(began time.Time) time.Duration { return time.Since(began).Round(time.Second) }
