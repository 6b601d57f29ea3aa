// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// Down removes a lab in any state, by its name and directory alone. It returns nil if there is none.
func Down(ctx context.Context, c Config) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	dir := filepath.Join(c.Dir, c.Name)
	errs := []error{proc.KillRecorded(dir)}
	errs = append(errs, killStrays(ctx, c.Name, dir))
	all, err := listNetns()
	errs = append(errs, err)
	var gone []string
	for _, name := range netnsOf(c.Name, all) {
		gone = append(gone, "netns del "+name)
	}
	errs = append(errs, ip.Batch(ctx, "", gone...), os.RemoveAll(dir))
	if err := os.Remove(c.Dir); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end lab %s: %w", c.Name, err)
	}
	return nil
}

// Down removes the lab.
func (l *Lab) Down(ctx context.Context) error {
	return Down(ctx, Config{Name: l.Name, Dir: filepath.Dir(l.Dir)})
}

// killStrays kills processes without a record, until none is left. It repeats because a daemon may have started another
// one in the meantime.
func killStrays(ctx context.Context, name, dir string) error {
	return poll.Within(ctx, poll.Limit, func(context.Context) error {
		pids, err := Strays(name, dir)
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill pid %d: %w", pid, err)
			}
		}
		if len(pids) > 0 {
			return fmt.Errorf("processes %v still run", pids)
		}
		return err
	})
}

// Strays returns the processes of a lab, except for the caller: those in one of its namespaces, those with the lab's
// marker in their environment, which child processes inherit, and those whose program is in the lab's directory. A
// shell is not included merely because its working directory is there.
func Strays(name, dir string) ([]int, error) {
	inodes, err := netnsInodes(name)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if belongs(filepath.Join("/proc", entry.Name()), dir, inodes) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// marker is the environment variable that identifies the lab's processes outside of its namespaces.
func marker(dir string) string { return "OVNKUBE_SLB_LAB=" + dir }

// belongs reports whether a process belongs to the lab. If its files cannot be read, the process is about to end.
func belongs(proc, dir string, inodes map[uint64]bool) bool {
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(proc, "ns/net"), &st); err != nil || zombie(proc) {
		return false
	}
	if inodes[st.Ino] {
		return true
	}
	if program, err := os.Readlink(filepath.Join(proc, "exe")); err == nil && strings.HasPrefix(program, dir+"/") {
		return true
	}
	env, err := os.ReadFile(filepath.Join(proc, "environ"))
	return err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool {
		return string(v) == marker(dir)
	})
}

func zombie(proc string) bool {
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	return err != nil || bytes.HasPrefix(text[bytes.LastIndexByte(text, ')')+1:], []byte(" Z"))
}

// netnsInodes returns the inodes of the lab's namespaces, which identify them in /proc/<pid>/ns/net.
func netnsInodes(name string) (map[uint64]bool, error) {
	all, err := listNetns()
	if err != nil {
		return nil, err
	}
	inodes := map[uint64]bool{}
	for _, ns := range netnsOf(name, all) {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(netnsDir, ns), &st); err == nil {
			inodes[st.Ino] = true
		}
	}
	return inodes, nil
}
