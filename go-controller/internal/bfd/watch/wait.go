// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// bell ends a wait: eventfd(2).
type bell struct{ fd int }

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &bell{fd}, nil
}

// ring ends the wait that goes on, or the next one. A nil bell has nobody who waits.
func (b *bell) ring() {
	if b != nil {
		_, _ = unix.Write(b.fd, binary.NativeEndian.AppendUint64(nil, 1)) // fails if it has rung 2^64 times
	}
}

// hush makes the next wait one until the next ring.
func (b *bell) hush() {
	_, _ = unix.Read(b.fd, make([]byte, 8)) // fails if it has not rung
}

func (b *bell) close() { _ = unix.Close(b.fd) }

// wait returns when there is something to read, and no later than at a time; never is the zero time.
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
