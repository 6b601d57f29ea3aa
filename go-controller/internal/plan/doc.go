// SPDX-License-Identifier: Apache-2.0

// Package plan computes what a Service needs from any dataplane: its addresses, their shards, and the
// endpoints that take its traffic. The endpoint decision (KEP-1669, KEP-1672) is made here, once, for all dataplanes.
//
// Invariants:
//   - A plan is a function of one Service, its placement and the reachability of endpoints. Equal input gives equal
//     plans.
//   - Code that needs the endpoints for another purpose calls Endpoints, which makes the same decision.
//   - The backends of a listener are distinct, sorted and of the VIP's family. So are its draining backends, and no
//     backend is both.
package plan
