// SPDX-License-Identifier: Apache-2.0

// Package controller runs the controller: it observes the API server and the network, decides (package decide), passes
// plans to the network (package loop) and statuses to their writers (packages report and kube). Package slb is its
// public API.
//
// Invariants:
//   - A pass does not block: it reads the newest snapshot and hands over its results. Writers and the runner work
//     concurrently.
//   - No decision is made before all objects have been read, and nothing is written to OVN before its databases have
//     been read. A restart therefore changes nothing.
//   - After changes of single Services, a full pass follows within five seconds, unless passes take very long.
package controller
