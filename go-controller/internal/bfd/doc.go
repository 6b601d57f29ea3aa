// SPDX-License-Identifier: Apache-2.0

// Package bfd implements Bidirectional Forwarding Detection (RFC 5880) in asynchronous mode, without authentication and
// echo: the packets, and the state machine of one end of a session. It has no clock and no sockets: the caller passes
// in packets and the time, and sends the packets that are returned. Package watch does this for single-hop (RFC 5881)
// and multihop (RFC 5883) paths.
//
// Invariants of a Session:
//   - Deadlines are not stored. They are computed from what was sent, received and negotiated. A shorter interval
//     therefore moves the next packet, and no stale timer is left.
//   - Each input is answered by at most one packet. The packet is sent at once if it differs from the previous one in
//     more than its poll and final bits, or if it answers a poll.
//   - A session that is not Up sends at most one packet per second.
//   - The peer is informed of an interval before it takes effect: less frequent packets, or an earlier detection, wait
//     for the end of the poll sequence (section 6.8.3).
//   - The same inputs produce the same packets: the jitter comes from a generator that is seeded with the session's
//     discriminator.
package bfd
