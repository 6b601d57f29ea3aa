// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
)

// Build is what a benchmark runs in a lab: the programs and manifests of one build.
type Build struct {
	// Controller is the program ovnkube-slb, Helper the program of package test/lab/cmd/lab.
	Controller, Helper string
	// Manifests is a kustomization like dist/manifests/base, with the components next to it.
	Manifests string
}

// AddFlags adds the flags that select the build.
func (b *Build) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&b.Controller, "controller", "_output/bin/ovnkube-slb", "the program to measure")
	flags.StringVar(&b.Helper, "lab", "_output/bin/lab", "the lab's program")
	flags.StringVar(&b.Manifests, "manifests", "dist/manifests/base", "the kustomization to install")
}

// Resolve makes all paths absolute.
func (b *Build) Resolve() (err error) {
	for _, p := range []*string{&b.Controller, &b.Helper, &b.Manifests} {
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	return nil
}

// UpInstalled sets up a lab and installs the build in it: the controller and the guard of each node, which is the agent
// of its zone with interconnect. label returns a label that each node gets before. If use, which gets the lab, or the
// installation fails, the lab stays, and the error says so.
func UpInstalled(ctx context.Context, c Config, b Build, label func(Node) string,
	use func(context.Context, *Lab) error) error {
	c.Binary = b.Helper
	l, err := Up(ctx, c)
	if err != nil {
		return err
	}
	err = l.installAll(ctx, b, label)
	if err == nil {
		err = use(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("%w; the lab stays: remove it with `lab --name %s down`", err, l.Name)
	}
	return nil
}

func (l *Lab) installAll(ctx context.Context, b Build, label func(Node) string) error {
	for _, n := range l.Nodes {
		if _, err := l.Kubectl(ctx, "", "label", "node", n.Name, label(n)); err != nil {
			return err
		}
	}
	if err := l.Install(ctx, b.Manifests, b.Controller); err != nil {
		return err
	}
	if l.Network().Zones() {
		agents := filepath.Join(b.Manifests, "../components/interconnect/rbac.yaml")
		if _, err := l.Kubectl(ctx, "", "apply", "-f", agents); err != nil {
			return err
		}
	}
	return l.StartGuards(ctx, b.Controller)
}
