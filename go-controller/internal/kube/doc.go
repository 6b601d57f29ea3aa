// SPDX-License-Identifier: Apache-2.0

// Package kube is the edge to the Kubernetes API: informers become facts of the world,
// decisions become status, conditions and events.
//
// Invariants:
//   - An object is converted when it changes, not when a decision is made; a Snapshot is
//     slices of pointers to values that never change.
//   - A status is written only if it differs from what the API server has, under the
//     resourceVersion that it was compared with: a restart writes nothing.
//   - The address comes first: a write that changes only conditions waits for all writes
//     that change addresses, and a quarter of the writers is all that conditions get. What
//     is decided meanwhile goes out in the same write.
//   - Conditions of others, and lastTransitionTime of a status that did not change, stay
//     as they are.
//   - Events tell transitions, as read from the status before and after a write. A
//     failover is one Event of the L2Domain, however many Services it moves.
package kube
