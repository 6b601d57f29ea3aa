// SPDX-License-Identifier: Apache-2.0

package frr

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Show runs a command of bgpd or bfdd whose output is JSON ("show bgp summary json") and decodes it.
func (r Router) Show(ctx context.Context, command string, into any) error {
	daemon := BGPD
	if strings.HasPrefix(command, "show bfd") {
		daemon = BFDD
	}
	out, err := r.ask(ctx, daemon, command)
	if err != nil {
		return fmt.Errorf("router %s: %s: %w", r.Name, command, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("router %s: %s: %w: %.200s", r.Name, command, err, out)
	}
	return nil
}

// ask runs a command in a daemon and returns what it writes. It does so as vtysh does, which takes much longer to start
// than a daemon needs for the answer, and tests ask often.
func (r Router) ask(ctx context.Context, daemon, command string) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", r.socket(daemon))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) }) // the waits below fail then
	defer stop()
	in := bufio.NewReader(conn)
	if _, err := execute(conn, in, "enable"); err != nil {
		return nil, err
	}
	out, err := execute(conn, in, command)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w; %s: %s", err, daemon, r.threads(daemon))
	}
	return out, err
}

// threads returns in which system call each thread of a daemon is that does not answer, see proc_pid_syscall(5), and
// where in the kernel it waits. One that waits for a lock is in futex(2).
func (r Router) threads(daemon string) string {
	pid, err := os.ReadFile(filepath.Join(r.Dir, daemon+".pid"))
	if err != nil {
		return err.Error()
	}
	tasks, _ := filepath.Glob(filepath.Join("/proc", strings.TrimSpace(string(pid)), "task/*")) // a valid pattern
	states := make([]string, 0, len(tasks))
	for _, task := range tasks {
		var state []string
		for _, file := range []string{"comm", "syscall", "wchan"} {
			text, err := os.ReadFile(filepath.Join(task, file))
			if err != nil {
				text = []byte(err.Error())
			}
			state = append(state, strings.TrimSpace(string(text)))
		}
		states = append(states, strings.Join(state, ": "))
	}
	return strings.Join(states, "; ")
}

// execute runs a command. It ends with a zero byte, and what the daemon writes with three and a status (vtysh_read in
// FRR's lib/vty.c).
func execute(to io.Writer, from *bufio.Reader, command string) ([]byte, error) {
	if _, err := to.Write(append([]byte(command), 0)); err != nil {
		return nil, err
	}
	out, err := from.ReadBytes(0)
	if err != nil {
		return nil, fmt.Errorf("%w after %q", err, out)
	}
	out = out[:len(out)-1]
	var end [3]byte
	if _, err := io.ReadFull(from, end[:]); err != nil {
		return nil, err
	}
	if status := end[2]; status != 0 {
		return nil, fmt.Errorf("status %d: %s", status, bytes.TrimSpace(out))
	}
	return out, nil
}
