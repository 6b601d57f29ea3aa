// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API that administrators write and that this project
// reports in: group slb.k8s.ovn.org, version v1alpha1, all kinds cluster-scoped.
//
// Field names are MetalLB's wherever the meaning is the same, so that manifests
// and habits carry over.
//
// What stays true of every kind here:
//
//   - Whatever one object's text alone can show to be wrong is refused by the API
//     server (CEL rules in the CRDs); overlap with another pool is refused
//     by a ValidatingAdmissionPolicy once that is in force, and always reported in the
//     condition Accepted. The Validate methods repeat that judgement for
//     objects that came in another way and add what CEL cannot say.
//   - Every value the schema accepts can be decoded by the Go types: one odd object
//     must not stop an informer.
//   - No field is silently ignored: the condition Accepted of an object names those
//     of its fields that have no effect in the release that runs.
//   - Every list in a spec is bounded, so that the cost of the rules is bounded.
//
// +kubebuilder:object:generate=true
// +groupName=slb.k8s.ovn.org
package v1alpha1
