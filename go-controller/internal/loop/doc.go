// SPDX-License-Identifier: Apache-2.0

// Package loop reconciles one dataplane with the newest plans.
//
// A Runner has the only desired state of the dataplane, want, until it takes the newest one, and the only record of
// what the dataplane has accepted, its results. Plans are immutable, so a plan that is equal to the accepted one,
// usually the same pointer, is applied. Statuses and the Leases of agents are derived from copies of the results. All
// other fields about Services are keys or times, except the plan in postponed: the one that the dataplane refused, so
// that a different one is tried at once.
//
// Invariants:
//   - Only differences from what the dataplane last accepted are applied. A plan that changes and changes back in the
//     meantime causes no call.
//   - All pending differences are applied together, and repetitions in batches.
//   - A key that fails is retried indefinitely, with a delay of 50 ms that doubles up to a minute, and does not block
//     other keys.
//   - Everything is applied again and pruned after the first plans, on Resync and every hour. Changes precede
//     repetitions, but however many there are, each batch contains some repetitions, and Prune waits for a limited
//     number of batches.
//   - A topology precedes the Services of its desired state, and these the next topology: at most two are configured in
//     succession while there is something to do for Services, and two only if the order of gateways has changed.
//   - A change that the dataplane postpones is no failure. It is tried again at the time that the dataplane has named,
//     or when the plan changes.
//   - Nothing is pruned before a full set of plans was set.
package loop
