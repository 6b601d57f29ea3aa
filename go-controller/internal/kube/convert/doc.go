// SPDX-License-Identifier: Apache-2.0

// Package convert converts API objects to the value types of package world. Each version of an object is converted
// once.
//
// Invariants:
//   - Conversion is a pure function of its arguments. It neither changes nor keeps them.
//   - A value of a user that is invalid or not permitted is never ignored silently. It becomes a Problem (nothing is
//     served until it is corrected) if serving would be wrong, and a Limit (served, and reported to the user) if it is
//     harmless.
//   - A Problem names the field, the value and the error.
package convert
