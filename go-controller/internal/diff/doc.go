// SPDX-License-Identifier: Apache-2.0

// Package diff finds the ordered differences of two maps.
//
// Invariants:
//   - Applying the changes to have gives want.
//   - Equal maps have no changes; equal input gives equal output, in order.
package diff
