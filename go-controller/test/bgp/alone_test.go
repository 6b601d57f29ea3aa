// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// speakAlone is the whole life of a process that is a speaker and nothing else, until it is killed.
func speakAlone() int {
	var desired []bgp.Session
	if err := json.Unmarshal([]byte(os.Getenv(sessions)), &desired); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := speaker.New(speaker.Options{})
	s.Set(desired)
	if err := s.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// alone starts such a process. It is killed with the test, if not before.
func alone(t *testing.T, desired ...bgp.Session) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(desired)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), sessions+"="+string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	return cmd
}

// kill is kill -9, and does nothing to what is dead.
func kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // It says that it was killed.
	}
}
