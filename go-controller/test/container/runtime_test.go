// SPDX-License-Identifier: Apache-2.0

package container

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

// mount is a bind mount.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// spec describes a container as a container runtime receives it.
type spec struct {
	// Root is the directory with the files of the image.
	Root   string
	Mounts []mount
	UID    int
	// Capabilities are the numbers of those that are not dropped (capabilities(7)).
	Capabilities []int
	ReadOnlyRoot bool
	NoNewPrivs   bool
	Args, Env    []string
	// PacketDevice is a device on which a raw socket is opened first, with the container's privileges; empty for none.
	PacketDevice string
}

// run turns this process into the container whose spec a file contains. It returns only if that fails.
func run(file string) error {
	runtime.LockOSThread() // namespaces and capabilities are those of a thread
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var s spec
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if err := s.enterRoot(); err != nil {
		return err
	}
	if err := s.dropPrivileges(); err != nil {
		return err
	}
	if s.PacketDevice != "" {
		port, err := neighbour.Open(s.PacketDevice)
		if err != nil {
			return err
		}
		port.Close()
	}
	return fmt.Errorf("execute %q: %w", s.Args, syscall.Exec(s.Args[0], s.Args, s.Env))
}

// enterRoot makes the root of the container that of this thread.
func (s *spec) enterRoot() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount private", err)
	}
	if err := bind(s.Root, s.Root, false); err != nil {
		return err
	}
	proc, dev := filepath.Join(s.Root, "proc"), filepath.Join(s.Root, "dev")
	for _, dir := range []string{proc, dev} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return os.NewSyscallError("mount proc", err)
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return os.NewSyscallError("mount dev", err)
	}
	if err := unix.Mknod(filepath.Join(dev, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		return os.NewSyscallError("mknod", err)
	}
	for _, m := range s.Mounts {
		target := filepath.Join(s.Root, m.Target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := bind(m.Source, target, m.ReadOnly); err != nil {
			return err
		}
	}
	if s.ReadOnlyRoot {
		if err := unix.Mount("", s.Root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return os.NewSyscallError("remount root", err)
		}
	}
	if err := unix.Chdir(s.Root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // pivot_root(2): the old root is then on top
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	return unix.Chdir("/")
}

func bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	return os.NewSyscallError("remount "+target,
		unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
}

// dropPrivileges keeps what a container runtime would. The group is root's, as for any user without an entry in
// /etc/passwd.
func (s *spec) dropPrivileges() error {
	var mask uint64
	for number := range unix.CAP_LAST_CAP + 1 {
		if slices.Contains(s.Capabilities, number) {
			mask |= 1 << number
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(number), 0, 0, 0); err != nil {
			return os.NewSyscallError("prctl PR_CAPBSET_DROP", err)
		}
	}
	// The system calls of package unix would change all threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return os.NewSyscallError("setgroups", errno)
	}
	if s.UID != 0 {
		uid := uintptr(s.UID)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
			return os.NewSyscallError("setresuid", errno)
		}
	} else {
		data := [2]unix.CapUserData{{Effective: uint32(mask), Permitted: uint32(mask)},
			{Effective: uint32(mask >> 32), Permitted: uint32(mask >> 32)}}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		if err := unix.Capset(&header, &data[0]); err != nil {
			return os.NewSyscallError("capset", err)
		}
	}
	if s.NoNewPrivs {
		return os.NewSyscallError("prctl PR_SET_NO_NEW_PRIVS", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	}
	return nil
}
