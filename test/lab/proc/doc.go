// SPDX-License-Identifier: Apache-2.0

// Package proc starts the lab's daemons, records them, and ends them, also from another program than the one that started them.
//
// Invariants:
//   - A process outlives its starter: it is the leader of its own session, so neither a closed terminal nor Ctrl-C reaches it.
//   - Every process is recorded in <Spec.Dir>/<Spec.Name>.proc for as long as it runs; whoever finds the directory can end it.
//   - A record names a process by pid and start time. A pid that the kernel has given to another program since is never signalled.
//   - Kill and Terminate return when the process is gone, and end its whole process group, so that what it forked goes with it.
package proc
