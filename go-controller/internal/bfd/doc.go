// SPDX-License-Identifier: Apache-2.0

// Package bfd is bidirectional forwarding detection (RFC 5880) in asynchronous mode,
// without authentication and echo: the packets, and what one end of a session makes of
// them. It has no clock and no socket: whoever uses it hands in packets and the time, and
// sends what it gets back. Package watch does so for single-hop (RFC 5881) and multihop
// (RFC 5883) paths.
//
// What stays true of a Session:
//   - Deadlines are not stored but follow from what was sent, heard and agreed. An interval
//     that becomes shorter moves the next packet by itself, and no timer is left behind.
//   - Each fact is answered by one packet at most. It goes out at once where it differs from
//     the one before in more than its poll and final bits, or answers a poll.
//   - While a session is not Up it is slow: a packet a second or fewer.
//   - The peer is told of an interval before anything relies on it: less frequent packets, or
//     an earlier detection, wait for the end of the poll sequence (section 6.8.3).
//   - The same facts make the same packets: jitter comes from a generator that the
//     session's discriminator seeds.
package bfd
