// SPDX-License-Identifier: Apache-2.0

// Package controller tests the whole controller against a real API server and real OVN
// databases with ovn-northd. Only the chassis are missing.
package controller
