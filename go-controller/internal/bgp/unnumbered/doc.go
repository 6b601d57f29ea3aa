// SPDX-License-Identifier: Apache-2.0

// Package unnumbered finds the router at the other end of a link that has only link-local
// addresses, and is found by it: both send Router Advertisements (RFC 4861). It needs
// CAP_NET_RAW.
//
// What stays true:
//   - What we advertise makes no host of the link choose us as its router: the lifetime is 0.
//   - Only what came from the link itself counts: hop limit 255, a link-local sender.
//   - The router that was heard first is the peer until it falls silent.
package unnumbered
