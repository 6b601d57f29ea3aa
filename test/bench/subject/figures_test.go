// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// measureInto is the environment variable that makes the test binary a benchmark. It measures without end and writes to
// the named file.
const measureInto = "SLB_TEST_MEASURE_INTO"

type numbers struct {
	Limit    int   `json:"limit"`
	Measured []int `json:"measured,omitzero"`
	Last     *int  `json:"last,omitzero"`
}

func TestMain(m *testing.M) {
	if file := os.Getenv(measureInto); file != "" {
		fmt.Fprintln(os.Stdout, measure(file))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func measure(file string) error {
	r := &numbers{Limit: 1}
	f, err := Keep(file, r)
	for i := 0; err == nil; i++ {
		if _, err = fmt.Fprintln(os.Stdout, "measured", len(r.Measured)); err != nil {
			return err
		}
		r.Measured = append(r.Measured, i)
		err = f.Save()
	}
	return err
}

// TestKilledBenchmarkKeepsResults kills a benchmark while it writes. Later runs replace the file of the previous
// one.
func TestKilledBenchmarkKeepsResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench", "x.json")
	for _, saves := range []int{3, 40, 500} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), measureInto+"="+file)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range saves {
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), "measured") {
				t.Fatalf("the benchmark wrote %q", lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the benchmark ended by itself")
		}
		got := read(t, file)
		// The benchmark prints line n after it has saved n-1 figures.
		if string(got["complete"]) != "false" || strings.Count(string(got["measured"]), ",") < saves-2 {
			t.Errorf("killed after %d saves: %s", saves-1, got)
		}
	}
}

func TestResultsOfCompleteRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	r := &numbers{Limit: 1}
	f, err := Keep(file, r)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, file); string(got["complete"]) != "false" || len(got) != 2 {
		t.Errorf("a run that has begun: %s, want no figures", got)
	}
	r.Last = new(int)
	text, err := f.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, file); string(got["complete"]) != "true" || string(got["last"]) != "0" ||
		!strings.HasPrefix(string(text), "{\n  \"complete\": true,\n  \"limit\": 1,\n") {
		t.Errorf("a run that has ended: %s\n%s", got, text)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("files %v, %v; want the one", left, err)
	}
}

func TestUnwritableResultsAreReported(t *testing.T) {
	if _, err := Keep(filepath.Join(t.TempDir(), "x.json"), &[]int{1}); err == nil ||
		!strings.Contains(err.Error(), "[1]: want an object") {
		t.Errorf("a list: %v", err)
	}
	var folder *fs.PathError
	if _, err := Keep("/proc/none/x.json", &numbers{}); !errors.As(err, &folder) ||
		!strings.HasPrefix(folder.Path, "/proc/none") {
		t.Errorf("no folder: %v", err)
	}
}

func read(t *testing.T, file string) (fields map[string]json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return fields
}
