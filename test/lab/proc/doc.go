// SPDX-License-Identifier: Apache-2.0

// Package proc starts the lab's daemons, records them, and stops them, even from a program other than the one that
// started them.
//
// Invariants:
//   - A process outlives the program that started it. It is the leader of its own session, so neither closing the
//     terminal nor Ctrl-C affects it.
//   - A running process is recorded in <Spec.Dir>/<Spec.Name>.proc. The directory is sufficient to stop it.
//   - A record identifies a process by pid and start time. A pid that the kernel has reused for another program is
//     never signaled.
//   - Kill and Terminate return when the process is gone. They kill its whole process group, including child processes.
package proc
