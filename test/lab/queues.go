// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// queueSize is the size of a queue in bytes. A packet takes about 1,000.
const queueSize = 4 << 20

// widenQueues enlarges the queues of the network interfaces of an Open vSwitch process. The kernel's datapath handles a
// packet when it arrives. A process reads packets from sockets (packet(7)), whose default size (net.core.rmem_default)
// has room for about 250: the traffic of a test in 80 ms, and the process may wait that long for a CPU.
func widenQueues(pid int) error {
	return eachQueue(pid, func(socket int) error {
		return unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, queueSize)
	})
}

// eachQueue calls f for each socket of a process that receives the packets of an interface.
func eachQueue(pid int, f func(socket int) error) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		to, err := os.Readlink(dir + "/" + file.Name())
		if err != nil || !strings.HasPrefix(to, "socket:") {
			continue // or closed meanwhile
		}
		number, err := strconv.Atoi(file.Name())
		if err != nil {
			return err
		}
		if err := ifQueue(process, number, f); err != nil && !errors.Is(err, unix.EBADF) {
			return err
		}
	}
	return nil
}

// ifQueue calls f for a socket of a process if it receives the packets of an interface.
func ifQueue(process, number int, f func(socket int) error) error {
	socket, err := unix.PidfdGetfd(process, number, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_PACKET {
		return err
	}
	return f(socket)
}
