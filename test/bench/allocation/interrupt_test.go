// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

// asBenchmark is the environment variable that makes the test binary the benchmark.
const asBenchmark = "SLB_TEST_AS_BENCHMARK"

func TestMain(m *testing.M) {
	if os.Getenv(asBenchmark) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestInterruptedBenchmarkKeepsResults sends SIGTERM to the benchmark after its first step.
func TestInterruptedBenchmarkKeepsResults(t *testing.T) {
	contract.Test(t, "go")
	dir := t.TempDir()
	file := filepath.Join(dir, "allocation.json")
	controller, err := program.Path(t.Context(), "go-controller/cmd/ovnkube-slb", dir)
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--services=100", "--modes=fast", "--controller="+controller,
		"--out="+file)
	cmd.Dir, cmd.Env, cmd.Stderr = "../../..", append(os.Environ(), asBenchmark+"=1"), &progress
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	read := func() (complete bool, result map[string]float64) {
		var r struct {
			Complete *bool
			Modes    map[string]map[string]float64
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return false, nil
		}
		if err := json.Unmarshal(text, &r); err != nil || r.Complete == nil {
			t.Errorf("the file is no report: %v\n%s", err, text)
			return false, nil
		}
		return *r.Complete, r.Modes["fast"]
	}
	await.NoError(t, "the first step is in the file", func(context.Context) error {
		select {
		case err := <-ended:
			t.Fatalf("ended before its first step was: %v\n%s", err, &progress)
		default:
		}
		if _, figures := read(); figures["single_idle_p50_ms"] <= 0 {
			return fmt.Errorf("figures %v", figures)
		}
		return nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Errorf("it was not interrupted:\n%s", &progress)
	}
	complete, figures := read()
	if complete || figures["single_idle_p50_ms"] <= 0 {
		t.Errorf("complete %v, figures %v; want some of an incomplete run", complete, figures)
	}
	for _, later := range []string{"burst_s", "restart_writes", "node_rss_mb"} {
		if value, ok := figures[later]; ok {
			t.Errorf("%s: %v, which was not measured", later, value)
		}
	}
}
