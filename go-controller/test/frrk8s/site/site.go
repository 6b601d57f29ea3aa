// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const (
	// Module is frr-k8s, of the version that contrib/frr-k8s.sh has.
	Module = "github.com/metallb/frr-k8s@v0.0.25"
	// Namespace is that of frr-k8s.
	Namespace = "frr-k8s-system"
	// Reloader is the script of frr-pythontools that frr-k8s calls.
	Reloader = "/usr/lib/frr/frr-reload.py"
	// debounce is how long frr-k8s waits for further changes, in milliseconds: 3000 where none is configured.
	debounce = "FRR_K8S_BGP_DEBOUNCE_TIMEOUT="
)

// Config configures a Site.
type Config struct {
	// Root is the directory of this project, and Dir that of all files, which Remove removes. By default it is a new
	// one that the user frr can reach: FRR runs as that user.
	Root, Dir string
	// Nodes is the number of nodes, named n1, n2 and so on.
	Nodes int
	// Debounce is how long frr-k8s waits for further changes, in milliseconds, and Poll after which time it reads the
	// states of sessions again, as a duration of Go. Empty means as long as it does by default.
	Debounce, Poll string
	// FRR is the directory of the FRR on the nodes. The default is that of the router, [frr.Prefix].
	FRR      string
	Progress io.Writer
}

// Site is a cluster with frr-k8s and a router.
type Site struct {
	Config

	Plane  *controlplane.ControlPlane
	Router frr.Router
	Nodes  []*Node
	// source is the directory of the module.
	source string
}

// Node is a node with FRR.
type Node struct {
	Name string
	Addr netip.Addr
	FRR  frr.Router
	// Config is the file that frr-k8s writes for FRR.
	Config string
	// dir has the state of the processes of frr-k8s.
	dir  string
	site *Site
}

// RouterAddr is the address of the router on the segment of the nodes.
func RouterAddr() netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, 1}) }

// Start starts the API server with frr-k8s' kinds, the router, and FRR on the nodes. What belongs to frr-k8s is started
// by Node.Start, after the Node exists.
func Start(ctx context.Context, c Config) (_ *Site, err error) {
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "frrk8s"); err != nil {
			return nil, err
		}
		if err := os.Chmod(c.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	base := filepath.Base(c.Dir)
	s := &Site{Config: c, Router: frr.Router{Name: base + "tor", Dir: filepath.Join(c.Dir, "tor"), Netns: base + "tor"}}
	for i := range c.Nodes {
		name := fmt.Sprintf("n%d", i+1)
		n := s.AddNode(name, base+name)
		n.Addr = netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 2)})
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Remove(context.WithoutCancel(ctx)))
		}
	}()
	if err := s.wire(ctx); err != nil {
		return s, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.startPlane(gctx) })
	for _, r := range s.routers() {
		g.Go(func() error { return r.Start(gctx) })
	}
	return s, g.Wait()
}

// AddNode adds a node in a network namespace. Nothing is started.
func (s *Site) AddNode(name, netns string) *Node {
	dir := filepath.Join(s.Dir, name)
	n := &Node{Name: name, site: s, FRR: frr.Router{Name: netns, Dir: filepath.Join(dir, "frr"), Netns: netns,
		Prefix: cmp.Or(s.FRR, frr.Prefix())},
		dir: filepath.Join(dir, "frr-k8s"), Config: filepath.Join(dir, "frr-k8s", "frr.conf")}
	s.Nodes = append(s.Nodes, n)
	return n
}

// StartPlane starts only an API server with frr-k8s' kinds.
func StartPlane(ctx context.Context, c Config) (*Site, error) {
	s := &Site{Config: c}
	return s, s.startPlane(ctx)
}

func (s *Site) routers() []frr.Router {
	all := []frr.Router{s.Router}
	for _, n := range s.Nodes {
		all = append(all, n.FRR)
	}
	return all
}

// wire creates a network namespace for each node, on a bridge that the router has.
func (s *Site) wire(ctx context.Context) error {
	tor := s.Router.Netns
	lines := []string{"netns add " + tor}
	for i, n := range s.Nodes {
		lines = append(lines, "netns add "+n.FRR.Netns,
			fmt.Sprintf("link add port%d netns %s type veth peer name eth0 netns %s", i, tor, n.FRR.Netns))
	}
	if err := ip.Batch(ctx, "", lines...); err != nil {
		return err
	}
	lines = []string{"link set lo up", "link add br0 type bridge", fmt.Sprintf("addr add %s/24 dev br0", RouterAddr())}
	for i, n := range s.Nodes {
		lines = append(lines, fmt.Sprintf("link set port%d master br0 up", i))
		if err := ip.Batch(ctx, n.FRR.Netns, "link set lo up", fmt.Sprintf("addr add %s/24 dev eth0", n.Addr),
			"link set eth0 up"); err != nil {
			return err
		}
	}
	return ip.Batch(ctx, tor, append(lines, "link set br0 up")...)
}

func (s *Site) startPlane(ctx context.Context) (err error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", Module).Output()
	if err != nil {
		return fmt.Errorf("download %s: %w", Module, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	s.source = module.Dir
	if s.Root, err = filepath.Abs(s.Root); err != nil {
		return err
	}
	s.Plane, err = controlplane.Start(ctx, controlplane.Config{Dir: filepath.Join(s.Dir, "plane"), Progress: s.Progress})
	if err != nil {
		return err
	}
	crds := filepath.Join(s.source, "config/crd/bases")
	for _, args := range [][]string{{"create", "namespace", Namespace}, {"apply", "-f", crds},
		{"wait", "--for=condition=Established", "--timeout=2m", "-f", crds}} {
		if _, err := s.Plane.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Remove ends all processes and deletes the namespaces, and the directory.
func (s *Site) Remove(ctx context.Context) error {
	var errs []error
	for _, n := range s.Nodes {
		errs = append(errs, proc.KillRecorded(n.dir), n.FRR.Kill())
	}
	errs = append(errs, proc.KillRecorded(s.webhookDir()))
	if s.Plane != nil {
		errs = append(errs, s.Plane.Stop(ctx))
	}
	if s.Router.Name == "" {
		return errors.Join(errs...)
	}
	errs = append(errs, s.Router.Kill())
	for _, r := range s.routers() {
		if _, err := os.Stat("/run/netns/" + r.Netns); err == nil {
			errs = append(errs, ip.Batch(ctx, "", "netns del "+r.Netns))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.Dir))...)
}
