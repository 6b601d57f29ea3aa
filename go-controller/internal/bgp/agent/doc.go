// SPDX-License-Identifier: Apache-2.0

// Package agent runs BGP on one node. It reads the cluster, lets package bgp compute the sessions and routes of the
// node, passes them to a speaker and reports in the node's BGPNodeStatus.
//
// Invariants:
//   - A speaker receives nothing before all objects have been read. The first routes of a session are therefore
//     complete, and a restart withdraws nothing.
//   - The speaker always receives the complete set of sessions. Sessions that have not changed are not affected.
//   - Only this process writes the status of the node, at most once per second and only if it has changed. If only
//     counters have changed, it is written a few times per minute, because each Service changes the counters of all
//     nodes. A peer that fails in the same way as before is not a change, nor is a session that does not last. Other
//     changes are written ten times once per second and then every 10 s, except that a session is established or lost.
//   - The process does not close the sessions when it ends. They and BFD end with it at the same moment. It reports
//     that before, unless it is killed, and waits for no more than 3 s for the API server.
package agent
