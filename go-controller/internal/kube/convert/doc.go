// SPDX-License-Identifier: Apache-2.0

// Package convert reads API objects into the world's own value types, once, at the edge.
//
// Invariants:
//   - Conversion is a pure function of its arguments, which it neither changes nor keeps.
//   - What a user wrote and we can't read or may not serve is never dropped in silence:
//     it becomes a Problem (nothing is served until it is mended) where serving would be
//     wrong, and a Limit (served, and told to the user) where it is harmless.
//   - A Problem names the field, the value and what is wrong with it.
package convert
