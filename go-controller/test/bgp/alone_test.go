// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/agent"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// speakAlone is the main function of a process that runs only a speaker, and BFD, until it is killed. It writes the
// states of its sessions to the standard output, a line for each change.
func speakAlone() int {
	var desired []bgp.Session
	if err := json.Unmarshal([]byte(os.Getenv(sessions)), &desired); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var s *speaker.Speaker
	paths := watch.New(func(peer string, _ watch.Session) { s.Changed(peer) })
	var mu sync.Mutex
	s = speaker.New(speaker.Options{BFD: agent.Paths{Watcher: paths}, Notify: func() {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(s.States()) // The test waits for it in vain.
	}})
	s.Set(desired)
	go func() { fmt.Fprintln(os.Stderr, "BFD:", paths.Run(context.Background())) }()
	if err := s.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// alone starts such a process. It is killed at the end of the test at the latest.
func alone(t *testing.T, desired ...bgp.Session) *exec.Cmd {
	t.Helper()
	return start(t, exec.Command("/proc/self/exe"), desired)
}

// aloneIn starts such a process in another network namespace.
func aloneIn(t *testing.T, netns string, desired ...bgp.Session) *daemon {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "states"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	cmd := exec.Command("ip", "netns", "exec", netns, self) // ip-netns(8) becomes the process.
	cmd.Stdout = out
	return &daemon{Cmd: start(t, cmd, desired), states: out.Name()}
}

// daemon is a process that runs only a speaker. states is the file with the states of its sessions.
type daemon struct {
	*exec.Cmd
	states string
}

// refused waits until a session is not Established, with a text in its last error.
func (d *daemon) refused(t *testing.T, peer, text string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		out, err := os.ReadFile(d.states)
		if err != nil {
			return err
		}
		lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
		var states []speaker.State
		if err := json.Unmarshal(lines[len(lines)-1], &states); err != nil {
			return err
		}
		for _, s := range states {
			if s.Peer == peer && s.Phase != speaker.Established && strings.Contains(s.LastError, text) {
				return nil
			}
		}
		return fmt.Errorf("the states are %+v", states)
	})
}

func start(t *testing.T, cmd *exec.Cmd, desired []bgp.Session) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(desired)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), sessions+"="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	return cmd
}

// kill sends SIGKILL. It does nothing if the process has already ended.
func kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error reports the signal
	}
}
