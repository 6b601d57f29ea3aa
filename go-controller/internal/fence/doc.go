// SPDX-License-Identifier: Apache-2.0

// Package fence keeps everything that a leader writes within its term.
//
// Invariants:
//   - A term is counted from when its last renewal was sent, so it ends before any other process may lead.
//   - Check is asked right before each write: package slb hands it to the dataplane, which asks before each
//     transaction, and Guard asks before each request to the API server.
//   - A term that has ended never begins again.
//   - A request that waits for a connection when the term ends is not sent. One that was sent may arrive.
package fence
