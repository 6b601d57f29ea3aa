// SPDX-License-Identifier: Apache-2.0

// Package scenario runs the controller and the agents of several nodes in one process, with a virtual clock, on an API
// server and an OVN in memory. The scenarios are in testdata, one txtar archive per behaviour. They read like a
// dialogue: after a description and manifests, the file script has commands, which start with "> ", and what each of
// them returns. With -update the results are rewritten.
//
// A result is what there is once all goroutines wait, so what takes time appears only after the command wait. The
// commands are described in commands_test.go.
//
// Invariants:
//   - Admission and conflicts are those of a real API server (package apiserver), rows those of the product (package
//     fabric). The processes are the product's own, except the guard, whose product needs a real Open vSwitch.
//   - Nothing depends on the real clock, the network or the file system, so that every run has the same results.
package scenario
