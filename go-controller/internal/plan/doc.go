// SPDX-License-Identifier: Apache-2.0

// Package plan says what a Service needs from any dataplane: the addresses it has, the
// shards that carry them, and which endpoints take its traffic. The endpoint decision
// (KEP-1669, KEP-1672) is made here, once, for all dataplanes.
//
// Invariants:
//   - A plan is a function of one Service, its placement and what is within reach; equal
//     input gives equal plans.
//   - Whoever needs the endpoints for another purpose asks Endpoints, the same decision.
//   - Backends of a listener are distinct, sorted, of the VIP's family. So are its draining ones,
//     and no backend is both.
package plan
