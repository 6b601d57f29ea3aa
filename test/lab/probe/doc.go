// SPDX-License-Identifier: Apache-2.0

// Package probe is a client that measures: how long a Service did not answer, how much was lost, which backends answered, which
// client address they saw, and whether open connections live on. Its peer is package responder.
//
// Invariants:
//   - A gap is the longest time between two questions that were answered, the start and the end of the run counting as such: a
//     Service that never answers has a gap as long as the run.
//   - A question is answered by what comes back on its own socket within a second; a long-lived connection's within six.
//   - Streams do not wait for each other.
package probe
