// SPDX-License-Identifier: Apache-2.0

// Package cluster reads MetalLB's configuration and ours from a cluster, and applies the converted objects to it.
//
// Invariants:
//   - Nothing of MetalLB and no Service is written.
//   - Objects are applied with server-side apply: a repeated import changes nothing, and fields that another client set
//     are conflicts and are not overwritten.
package cluster
