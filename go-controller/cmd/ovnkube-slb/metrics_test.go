// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// TestNodeMetricsAreDocumented compares the metrics of the guard and of the agent of OpenShift SDN with the tables in
// docs/metrics.md.
func TestNodeMetricsAreDocumented(t *testing.T) {
	registry := prometheus.NewRegistry()
	o := &nodeOptions{node: "n1", guard: true, sdn: true, sdnHealth: ":9484", ovsAddress: "unix:/nowhere",
		runDir: "/nowhere"}
	if _, err := newModules(o, &rest.Config{}, registry); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) == 0 {
		t.Fatalf("%d metrics (%v)", len(families), err)
	}
	for _, f := range families {
		begin, end := fmt.Sprintf("| `%s` | %s |", f.GetName(), strings.ToLower(f.GetType().String())),
			fmt.Sprintf("| %s |\n", f.GetHelp())
		found := false
		for line := range strings.Lines(string(docs)) {
			found = found || strings.HasPrefix(line, begin) && strings.HasSuffix(line, end)
		}
		if !found {
			t.Errorf("docs/metrics.md has no line %s ... %s", begin, end)
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

// TestBindWaitsWhileAddressIsInUse checks that an address in use by another process does not end this process.
func TestBindWaitsWhileAddressIsInUse(t *testing.T) {
	occupant, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), bindEvery/10)
	defer cancel()
	if l, err := bind(short, occupant.Addr().String()); l != nil || err != nil || short.Err() == nil {
		t.Fatalf("while another listens: %v, %v, and the context says %v", l, err, short.Err())
	}
	var bound net.Listener
	var g errgroup.Group
	g.Go(func() error {
		var err error
		bound, err = bind(t.Context(), occupant.Addr().String())
		return err
	})
	if err := occupant.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bound.Close() }()

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := bind(over, bound.Addr().String()); l != nil || err != nil {
		t.Errorf("after the end of the process: %v, %v", l, err)
	}
	var invalid *net.AddrError
	if _, err := bind(t.Context(), "127.0.0.1:99999"); !errors.As(err, &invalid) {
		t.Errorf("no address at all: %v", err)
	}
}
