// SPDX-License-Identifier: Apache-2.0

// Package diff computes the ordered differences between two maps.
//
// Invariants:
//   - Applying the changes to have gives want.
//   - Equal maps have no changes. Equal input gives equal output, in order.
package diff
