// SPDX-License-Identifier: Apache-2.0

// Package watch runs sessions of package bfd with real peers: single-hop (RFC 5881) and multihop (RFC 5883), IPv4 and
// IPv6.
//
// Invariants:
//   - Only the goroutine of Run uses sockets. Watch and Leave change the wanted state and return at once.
//   - Received packets are read before a peer is considered silent, so that a process that was suspended does not take
//     its own pause for a failure of the peer.
//   - A packet belongs to a session only if it came from the peer's address, to the port of the session's kind, through
//     its interface if it has one, with the TTL that the kind requires, and with the session's discriminator once the
//     peer knows it. While a session is Up, the kernel drops the others, so that they take no room of the peers'.
//   - Sockets are open only while sessions need them. The ports are shared with another BFD daemon of the node, as
//     FRR's bfdd: each gets its packets, whichever starts first, and neither keeps the other from starting.
package watch
