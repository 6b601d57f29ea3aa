// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab"
)

// Labels of specs.
const (
	// smoke labels the core features, which `make test` runs in both modes and CI on each version of OVN. All other specs
	// run in `make nightly`.
	smoke = "smoke"
	// withoutLayer2 labels specs that need no gateway of a segment.
	withoutLayer2 = "without layer 2"
)

// network returns the cluster under test. $E2E_TARGET is model (the default) or ovnkube. $E2E_MODE, $E2E_GATEWAY and
// $E2E_SEGMENT configure it like `lab up --mode --gateway --segment`.
func network() lab.Network {
	return lab.Network{
		Kind: os.Getenv("E2E_TARGET"), Mode: os.Getenv("E2E_MODE"), Gateway: os.Getenv("E2E_GATEWAY"),
		Segment: os.Getenv("E2E_SEGMENT"),
	}
}

// onLAN reports whether the segment is the nodes' own, behind br-ex, where guards are needed.
func onLAN() bool { return cluster.Network().Segment == lab.OnLAN }

// here translates addresses and objects of the provider segment to the segment of the cluster under test. The L2Domain
// keeps its name.
func here(text string) string { return cluster.Network().OnSegment(text) }

// slowDetection is the failure detection of the L2Domain in the suite. With the defaults, a gateway that gets no CPU
// time for 0.6 s is replaced, so that a spec that expects none to be would depend on the load of the machine.
// Benchmarks measure failover with the defaults.
const slowDetection = "  failover: {detectInterval: 1s, multiplier: 3}\n"

// examplesHere writes docs/examples for the segment of the cluster under test, and returns their directory.
func examplesHere(dir string) (string, error) {
	const source = root + "/docs/examples/"
	files, err := filepath.Glob(source + "*.yaml")
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "examples")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		moved := here(string(text))
		if filepath.Base(file) == "l2domain.yaml" {
			moved += slowDetection
			if onLAN() { // Both addresses of Service web have one gateway, as by chance on the provider segment.
				moved += "  gateways: {shards: 1}\n"
			}
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(moved), 0o644); err != nil {
			return "", err
		}
	}
	return dir + "/", nil
}
