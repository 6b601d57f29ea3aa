// SPDX-License-Identifier: Apache-2.0

// Package api tests the installed manifests against a real kube-apiserver: the CRDs with their
// validation rules, the admission policy, the RBAC rules of the controller, the ways to run it, and
// the examples of the documentation. The tests need neither a network nor a controller.
package api
