// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// Names of the processes in the run directory, for [proc.Find].
const (
	EtcdProcess              = "etcd"
	APIServerProcess         = "kube-apiserver"
	ControllerManagerProcess = "kube-controller-manager"
)

// stopGrace is the time etcd has to terminate.
const stopGrace = 2 * time.Second

// Config configures a control plane. Only Dir is required.
type Config struct {
	// Dir is the run directory. The control plane writes only there, and reuses the data of an earlier run.
	Dir string
	// Bin is the directory of the programs. If empty, the result of [Binaries] is used, which builds them if necessary.
	Bin BinDir
	// Address and Port are where the API server listens. The zero values select a private loopback address and a free port
	// on it. The processes run in the caller's network namespace because the caller must reach them to check their
	// readiness.
	Address netip.Addr
	Port    uint16
	// ServiceCIDRs has one prefix, or one per address family, the first of the family of Address. If nil, they are
	// 10.96.0.0/16 and fd00:10:96::/112.
	ServiceCIDRs []netip.Prefix
	// APIServerArgs and ControllerManagerArgs are appended to the programs' arguments. If an argument is repeated, the
	// last one takes effect.
	APIServerArgs, ControllerManagerArgs []string
	// Progress receives lines about long steps. Nil discards them.
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	dir    string
	bin    BinDir
	server string
	rest   *rest.Config
	// objects is the administrator's client for objects of any kind.
	objects *objects
}

// Start runs a control plane and returns when it serves: readyz succeeds and the namespace default exists. From an
// empty directory this takes about three seconds. The context bounds the start, not the lifetime. If Start returns an
// error, no process is left running.
func Start(ctx context.Context, config Config) (_ *ControlPlane, err error) {
	if config, err = config.complete(ctx); err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	c, err := prepare(config)
	if err != nil {
		return nil, fmt.Errorf("control plane in %s: %w", config.Dir, err)
	}
	for _, spec := range config.specs(c) {
		if _, err := proc.Start(ctx, spec); err != nil {
			return nil, errors.Join(fmt.Errorf("control plane in %s: %w", config.Dir, err), c.Stop(ctx))
		}
	}
	return c, nil
}

// complete sets the defaults.
func (c Config) complete(ctx context.Context) (Config, error) {
	var err error
	if c.Dir == "" {
		return c, errors.New(`config: Dir "": want a directory`)
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, fmt.Errorf("config: Dir: %w", err)
	}
	if !c.Address.IsValid() {
		c.Address = ownLoopback()
	}
	if c.Port == 0 {
		if c.Port, err = freePort(c.Address); err != nil {
			return c, fmt.Errorf("config: Address %s: no free port: %w", c.Address, err)
		}
	}
	if len(c.ServiceCIDRs) == 0 {
		c.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}
	}
	if c.Bin == "" {
		c.Bin, err = Binaries(ctx, c.Progress)
	}
	return c, err
}

// prepare writes keys, certificates and the administrator's kubeconfig.
func prepare(config Config) (*ControlPlane, error) {
	if err := os.MkdirAll(config.Dir, 0o755); err != nil {
		return nil, err
	}
	a, err := openAuthority(config.Dir)
	if err != nil {
		return nil, err
	}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	cert, key, err := a.server(APIServerProcess, names, config.Address, config.ServiceCIDRs[0].Masked().Addr().Next())
	if err != nil {
		return nil, err
	}
	if err := writePair(config.Dir, APIServerProcess, cert, key); err != nil {
		return nil, err
	}
	if _, err := ensureServiceAccountKey(config.Dir); err != nil {
		return nil, err
	}
	server := "https://" + netip.AddrPortFrom(config.Address, config.Port).String()
	path, err := writeKubeconfig(config.Dir, a, server, adminUser, []string{adminGroup})
	if err != nil {
		return nil, err
	}
	client, err := loadRESTConfig(path)
	if err != nil {
		return nil, err
	}
	return newControlPlane(config.Dir, config.Bin, server, client)
}

// Attach opens the control plane that runs in the directory, regardless of which program started it.
func Attach(dir string) (*ControlPlane, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	apiserver, err := proc.Find(dir, APIServerProcess)
	if err != nil {
		return nil, fmt.Errorf("no control plane in %s: %w", dir, err)
	}
	if !apiserver.Alive() {
		return nil, fmt.Errorf("no control plane in %s: %s (pid %d) has ended, see %s", dir, apiserver.Name, apiserver.Pid,
			apiserver.Log())
	}
	client, err := loadRESTConfig(kubeconfigPath(dir, adminUser))
	if err != nil {
		return nil, fmt.Errorf("control plane in %s: %w", dir, err)
	}
	bin := BinDir(filepath.Dir(apiserver.Args[0]))
	return newControlPlane(dir, bin, client.Host, client)
}

func newControlPlane(dir string, bin BinDir, server string, client *rest.Config) (*ControlPlane, error) {
	objects, err := newObjects(client)
	if err != nil {
		return nil, fmt.Errorf("control plane in %s: %w", dir, err)
	}
	return &ControlPlane{dir: dir, bin: bin, server: server, rest: client, objects: objects}, nil
}

// Stop ends the processes, the API server before etcd, and keeps the run directory. Only etcd is terminated gracefully
// because it is the only one with state to flush. The others would merely wait for their clients to disconnect. Stop
// does nothing if the control plane is stopped.
func (c *ControlPlane) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	for _, step := range []struct {
		name string
		end  func(*proc.Process) error
	}{
		{ControllerManagerProcess, (*proc.Process).Kill},
		{APIServerProcess, (*proc.Process).Kill},
		{EtcdProcess, func(p *proc.Process) error { return p.Terminate(ctx) }},
	} {
		p, err := proc.Find(c.dir, step.name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = step.end(p)
		}
		if err != nil {
			return fmt.Errorf("stop the control plane in %s: %w", c.dir, err)
		}
	}
	return nil
}

// Dir returns the run directory.
func (c *ControlPlane) Dir() string { return c.dir }

// Bin returns the directory of the programs.
func (c *ControlPlane) Bin() BinDir { return c.bin }

// KubectlCommand returns a kubectl command as administrator that is not started, for callers that set its standard
// streams.
func (c *ControlPlane) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.bin.Path("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.AdminKubeconfig(), "KUBECACHEDIR="+filepath.Join(c.dir,
		"kubectl-cache"))
	return cmd
}

// Kubectl runs kubectl as administrator and returns its standard output. The error includes its standard error.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	var stderr strings.Builder
	cmd := c.KubectlCommand(ctx, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
