// SPDX-License-Identifier: Apache-2.0

// Package crd applies the rules of CustomResourceDefinitions to objects: pruning, defaults, schemas and CEL rules, with
// the code of the API server.
//
// Invariants:
//   - The rules are those of dist/manifests/crds. Nothing here repeats one of them.
//   - Check refuses what an API server with these definitions refuses if a user applies a manifest with kubectl.
//     Admission policies, which compare several objects, are not evaluated: see package objects.
package crd
