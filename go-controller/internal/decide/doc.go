// SPDX-License-Identifier: Apache-2.0

// Package decide makes every decision of the controller: it turns one snapshot of the cluster into addresses (package
// ipam), shards and placements (package place), plans (package plan) and advertisements (package bgp), and determines
// which new addresses guards probe first. It has no effects and no clock.
//
// Invariants:
//   - A decision depends on the snapshot and on the State. The State keeps what the API server does not show yet (the
//     overlay, laid over each snapshot before anything is decided), the probes in progress, the delays between status
//     refreshes, and the inputs of the last plans.
//   - Amend has the same result as a new decision about the whole snapshot, or returns false. AmendAll has that of a
//     decision about the changes that it applies, and reports Incomplete if others are missing. Property tests check
//     this.
//   - An equal plan keeps its pointer from one decision to the next, and an equal status in package report keeps its
//     own. Unchanged plans and statuses are therefore neither compared nor written.
//   - An address that is announced is never withheld again (ADR 8).
package decide
