// SPDX-License-Identifier: Apache-2.0

// Package connlimit limits the number of open connections of a server that any client can reach.
//
// Invariants:
//   - No more connections are open than the limit.
//   - A new connection is accepted at once. One in excess closes another.
//   - Connections that the server trusts, at most half of the limit, are not closed for others.
package connlimit
