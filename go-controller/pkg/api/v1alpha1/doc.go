// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the API of this project: group slb.k8s.ovn.org, version v1alpha1. All kinds are
// cluster-scoped. Administrators write the specs, and this project writes the statuses.
//
// Field names are the same as in MetalLB wherever the meaning is the same, so that manifests can be reused.
//
// Invariants of every kind:
//
//   - The API server rejects an object that is invalid by itself (CEL rules in the CRDs). A ValidatingAdmissionPolicy
//     rejects a pool that overlaps another pool, once the policy is in force. The condition Accepted always reports the
//     overlap. The Validate methods repeat these checks for objects that were created in another way, and add the
//     checks that CEL cannot express.
//   - The Go types can decode every value that the schema accepts: one malformed object must not stop an informer.
//   - No field is silently ignored: the condition Accepted of an object names those of its fields that have no effect
//     in the running release.
//   - Every list in a spec is bounded, so that the cost of the rules is bounded.
//
// +kubebuilder:object:generate=true
// +groupName=slb.k8s.ovn.org
package v1alpha1
