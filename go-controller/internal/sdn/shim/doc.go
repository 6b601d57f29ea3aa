// SPDX-License-Identifier: Apache-2.0

// Package shim makes plans true where the cluster's network is OpenShift SDN: it tells nodes by
// an annotation which addresses to hold, and asks their agents how they are.
//
// Invariants:
//   - Who gives an address up is told, and has done it or can't be asked, before another is told
//     to take it. A gateway that is alive and silent about it is waited for until handoverTime.
//   - What the nodes are told already is adopted: a new controller writes nothing.
//   - A gateway is lost when it was silent three times in a row, or says that it can't. One on
//     which nobody listens any more is given the time in which its kernel gives its addresses up.
//   - A gateway that is lost counts again when it has answered three times in a row.
package shim
