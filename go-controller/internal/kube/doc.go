// SPDX-License-Identifier: Apache-2.0

// Package kube connects the project to the Kubernetes API: it converts the objects of informers to facts in package
// world, and writes decisions as status, conditions and Events.
//
// Invariants:
//   - An object is converted when it changes, not when a decision is made. A Snapshot consists of slices of pointers to
//     immutable values.
//   - A status is written only if it differs from the one at the API server, with the resourceVersion of the object it
//     was compared with. A restart writes nothing.
//   - Addresses are written first: a write that changes only conditions is not started while a write that changes
//     addresses is queued, and at most a quarter of the writers write conditions. Later decisions about the same object
//     are merged into one write.
//   - Events report transitions, which are computed from the status before and after a write. A failover is one Event
//     on the L2Domain, regardless of the number of Services it moves.
package kube
