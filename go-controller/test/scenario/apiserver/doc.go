// SPDX-License-Identifier: Apache-2.0

// Package apiserver is an API server in memory, for tests. client-go reaches it through [Client], which is an
// http.RoundTripper, so nothing of it needs a socket, and it works in a bubble of testing/synctest.
//
// It has what the project and its tests use: get, list, watch, create, update, patch and delete, the subresource
// status, resource versions with conflicts, watch lists, finalizers, selectors, and discovery.
//
// Invariants:
//   - Objects of the project's own kinds are pruned, defaulted and validated with the schemas and CEL rules of its
//     CustomResourceDefinitions, by the code of a real API server.
//   - Every change has a resource version of its own, and watches deliver the changes in this order.
//   - A write that changes nothing has no effect, and is no event.
//   - Stored objects are never modified. UIDs depend only on the names of objects and on how often they were created.
package apiserver
