// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/sdn/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

const nodes = 4

func TestMain(m *testing.M) {
	nested := func() int {
		return site.Nest(func(dir string) int {
			if err := os.Setenv("SLB_TEST_SDN_FILES", dir); err != nil {
				return 1
			}
			return m.Run()
		})
	}
	if site.IsPart() { // its arguments are not those of a test
		os.Exit(nested())
	}
	os.Exit(contract.Main(m, nested))
}

// running is a site that runs the product.
type running struct {
	*site.Site
	t           *testing.T
	controllers map[string]*proc.Process
}

func start(t *testing.T) *running {
	t.Helper()
	dir := os.Getenv("SLB_TEST_SDN_FILES")
	program, err := program.Path(t.Context(), "go-controller/cmd/ovnkube-slb", dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := site.Build(t.Context(), site.Options{Dir: dir, Program: program, Manifests: "../../../dist/manifests",
		Nodes: nodes, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{s, t, map[string]*proc.Process{}}
	for i := 1; i <= nodes; i++ {
		if _, err := s.StartAgent(t.Context(), site.NodeName(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"c1", "c2"} {
		r.controller(name)
	}
	t.Cleanup(r.logs)
	return r
}

func (r *running) controller(name string) {
	r.t.Helper()
	p, err := r.StartController(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	r.controllers[name] = p
}

// logs prints the logs of all programs if a test has failed.
func (r *running) logs() {
	if !r.t.Failed() {
		return
	}
	const most = 6000
	files := []string{r.controllers["c1"].Log(), r.controllers["c2"].Log()}
	for i := 1; i <= nodes; i++ {
		if p, err := r.Agent(site.NodeName(i)); err == nil {
			files = append(files, p.Log())
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		r.t.Logf("%s (%v):\n%s", file, err, text[max(0, len(text)-most):])
	}
}

func (r *running) await(what string, ask func(ctx context.Context) error) {
	r.t.Helper()
	await.NoError(r.t, what, ask)
}

// settled waits until count addresses are held by the kernels of their assigned nodes, and returns the nodes by
// address.
func (r *running) settled(count int, but ...string) map[netip.Addr]string {
	r.t.Helper()
	var held map[netip.Addr]string
	r.await("addresses held", func(ctx context.Context) error {
		var err error
		if held, err = r.Held(ctx); err != nil {
			return err
		}
		if len(held) != count {
			return fmt.Errorf("%d addresses are held, want %d", len(held), count)
		}
		for i := 1; i <= nodes; i++ {
			if node := site.NodeName(i); !slices.Contains(but, node) {
				if err := r.obeys(node, held); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return held
}

// obeys checks that the kernel of a node has exactly the addresses assigned to the node.
func (r *running) obeys(node string, held map[netip.Addr]string) error {
	has, err := r.Kernel(node)
	if err != nil {
		return err
	}
	for a, by := range held {
		if has[a] != (by == node) {
			return fmt.Errorf("address %s of node %s: node %s has it: %v", a, by, node, has[a])
		}
	}
	for a := range has {
		if held[a] == "" {
			return fmt.Errorf("%s is on node %s, and assigned to no Service", a, node)
		}
	}
	return nil
}
