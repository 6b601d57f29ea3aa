// SPDX-License-Identifier: Apache-2.0

// Package api tests what is installed into a cluster against a real kube-apiserver: the CRDs with
// their rules, the admission policy, the rights of the controller, the ways of running it, and the
// examples of the documentation. Nothing here needs a network or a controller.
package api
