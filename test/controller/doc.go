// SPDX-License-Identifier: Apache-2.0

// Package controller tests the controller as a whole between a real API server and real
// OVN databases with ovn-northd; only the chassis are missing.
package controller
