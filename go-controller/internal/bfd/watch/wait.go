// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// wakeup interrupts a wait: eventfd(2).
type wakeup struct{ fd int }

func newWakeup() (*wakeup, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &wakeup{fd}, nil
}

// wake interrupts the current wait, or the next one. It does nothing on a nil wakeup.
func (b *wakeup) wake() {
	if b != nil {
		_, _ = unix.Write(b.fd, binary.NativeEndian.AppendUint64(nil, 1)) // fails after 2^64 unread wakeups
	}
}

// drain discards past wakeups, so that the next wait is not interrupted by them.
func (b *wakeup) drain() {
	_, _ = unix.Read(b.fd, make([]byte, 8)) // fails if there was no wakeup
}

func (b *wakeup) close() { _ = unix.Close(b.fd) }

// wait returns when a descriptor is readable, or at the given time at the latest; the zero time means never.
func wait(fds []unix.PollFd, until time.Time) error {
	var timeout *unix.Timespec
	if !until.IsZero() {
		t := unix.NsecToTimespec(max(time.Until(until), 0).Nanoseconds())
		timeout = &t
	}
	_, err := unix.Ppoll(fds, timeout, nil)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return os.NewSyscallError("ppoll", err)
}
