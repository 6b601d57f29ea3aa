// SPDX-License-Identifier: Apache-2.0

// Package status turns decisions into the statuses of Kubernetes objects: conditions, addresses, and columns of kubectl
// get. It is pure: the writers of package kube send the results.
//
// Invariants:
//   - An object that has the desired status already is not changed, so that a restart writes nothing.
//   - Conditions of other controllers, and lastTransitionTime of an unchanged status, are not modified.
//   - What a restarted controller reads back, the condition ExternalIPs and the leases of a pool, is complete.
package status
