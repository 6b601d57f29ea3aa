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

// speakAlone is the main function of a process that runs only a speaker until it is killed.
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

// alone starts such a process. It is killed at the end of the test at the latest.
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

// kill sends SIGKILL. It does nothing if the process has already ended.
func kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the error reports the signal
	}
}
