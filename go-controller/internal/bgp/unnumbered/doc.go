// SPDX-License-Identifier: Apache-2.0

// Package unnumbered discovers the router at the other end of a link that has only link-local addresses, and lets that
// router discover this node: both send Router Advertisements (RFC 4861). It needs CAP_NET_RAW.
//
// Invariants:
//   - No host on the link selects us as its router, because the advertised router lifetime is 0.
//   - Only messages from the link itself are accepted: hop limit 255 and a link-local sender.
//   - A router with which there is a session remains the peer until its advertisements stop.
//   - A host that only sends advertisements, from however many addresses, delays a session with the router of the last
//     one by its own turn at most, which is half a minute.
package unnumbered
