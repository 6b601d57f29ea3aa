// SPDX-License-Identifier: Apache-2.0

// Package probe is a measuring client. It measures how long a Service did not respond, how many requests were lost,
// which backends responded, which client address they saw, and whether open connections survived. Its peer is package
// responder.
//
// Invariants:
//   - A gap is the longest time between two requests that received a response. The start and the end of the run count
//     as such: the gap of a Service that never responds is as long as the run.
//   - A request is answered by a response on its own socket within 1 s, on a long-lived connection within 20 s.
//   - Streams do not wait for each other.
package probe
