// SPDX-License-Identifier: Apache-2.0

// Package fence restricts the writes of a leader to its term.
//
// Invariants:
//   - A term is counted from the time its last renewal was sent, so it ends before any other process may lead.
//   - Check is called right before each write: package slb passes it to the dataplane, which calls it before each
//     transaction, and clients with WrapConfig call it before each request that writes to the API server.
//   - A term that has ended never begins again.
//   - A request that waits for a connection when the term ends is not sent. A request that was sent may arrive.
package fence
