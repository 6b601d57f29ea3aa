// SPDX-License-Identifier: Apache-2.0

// Package report builds the statuses of Services, pools, L2Domains and BGP objects from a decision (package decide) and
// from what the dataplane has reported. Package kube writes them. It has no effects and no clock.
//
// Invariants:
//   - A status claims only what was observed. What is unknown is Unknown, or keeps its last value.
//   - A new address appears in a status once OVN has it, or once it is known that OVN cannot take it because its
//     databases are unreachable or reject it. An assigned address is never removed for such a reason.
//   - The message of Announced names the first broken link between a client and the Service.
package report
