// SPDX-License-Identifier: Apache-2.0

// Package load is a client that sends as much as its peer answers, for benchmarks. Package probe measures what a client
// notices; load measures how much a path carries. The peer of both is package responder.
//
// Invariants:
//   - What is counted was answered: a request that is sent and lost does not count.
//   - Each worker has one connection or socket at a time, and waits for the answer before the next request. Only a
//     stream writes ahead of the answers.
//   - Targets are used in turn, so that a list of pods is loaded as a load balancer would.
package load
