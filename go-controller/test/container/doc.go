// SPDX-License-Identifier: Apache-2.0

// Package container tests that the containers of dist/manifests work as they are deployed there. Each runs the real
// program, in a root that has the files of the image and nothing else, with the mounts, user, capabilities and
// arguments of its manifest and the token of its ServiceAccount, against a real API server and real databases. The
// kernel enforces all of that; seccomp profiles and SELinux are not modelled.
//
// It requires root, and runs in a network namespace of its own.
package container
