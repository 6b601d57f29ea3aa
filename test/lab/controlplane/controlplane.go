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

// stopGrace is what etcd gets to end by itself.
const stopGrace = 2 * time.Second

// Config says where a control plane runs. Only Dir is needed.
type Config struct {
	// Dir is the run directory: everything that the control plane writes. Data of an earlier run in it are used again.
	Dir string
	// Bin has the programs. Empty: what [Binaries] returns, built on the way if need be.
	Bin BinDir
	// Address and Port are where the API server listens. Zero: a loopback address of its own, and a port free on it.
	// The processes run in the caller's network namespace, for whoever starts them must reach them to see when they serve.
	Address netip.Addr
	Port    uint16
	// ServiceCIDRs are one prefix or one a family, the first of Address's family. Nil: 10.96.0.0/16 and fd00:10:96::/112.
	ServiceCIDRs []netip.Prefix
	// APIServerArgs and ControllerManagerArgs are added to the programs' arguments; of a repeated one the last counts.
	APIServerArgs, ControllerManagerArgs []string
	// Progress gets lines about steps that take long. Nil: none.
	Progress io.Writer
}

// ControlPlane is one that runs.
type ControlPlane struct {
	dir    string
	bin    BinDir
	server string
	rest   *rest.Config
}

// Start runs a control plane and returns when it serves: readyz is fine and the namespace default exists. From an empty directory that
// takes about three seconds. The context bounds the start, not the life. After an error nothing runs.
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

// complete fills the fields that were left out.
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
	cert, key, err := a.server(config.Address, config.ServiceCIDRs[0].Masked().Addr().Next())
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
	return &ControlPlane{dir: config.Dir, bin: config.Bin, server: server, rest: client}, nil
}

// Attach opens the control plane that runs from the run directory, whoever started it.
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
		return nil, fmt.Errorf("no control plane in %s: %s (pid %d) has ended, see %s", dir, apiserver.Name, apiserver.Pid, apiserver.Log())
	}
	client, err := loadRESTConfig(kubeconfigPath(dir, adminUser))
	if err != nil {
		return nil, fmt.Errorf("control plane in %s: %w", dir, err)
	}
	bin := BinDir(filepath.Dir(apiserver.Args[0]))
	return &ControlPlane{dir: dir, bin: bin, server: client.Host, rest: client}, nil
}

// Stop ends the processes, the API server before its etcd; the run directory stays. Only etcd has a state to put in order, the others
// would but wait for their clients to leave. Stopping what is stopped does nothing.
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

// Dir is the run directory.
func (c *ControlPlane) Dir() string { return c.dir }

// Bin is where the programs are.
func (c *ControlPlane) Bin() BinDir { return c.bin }

// KubectlCommand is kubectl as administrator, not yet started: for callers that give standard input or want the streams.
func (c *ControlPlane) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.bin.Path("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.AdminKubeconfig(), "KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"))
	return cmd
}

// Kubectl runs kubectl as administrator and returns its standard output; the error quotes its standard error.
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

// Apply creates or updates the objects of the manifests, YAML or JSON, server-side.
func (c *ControlPlane) Apply(ctx context.Context, manifests string) error {
	cmd := c.KubectlCommand(ctx, "apply", "--server-side", "--force-conflicts", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
