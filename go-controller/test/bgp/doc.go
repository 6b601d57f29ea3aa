// SPDX-License-Identifier: Apache-2.0

// Package bgp tests the speaker against FRR: how each field of a session and of a route affects the router, and what
// must persist after failures. It needs root.
//
// The tests run in a network namespace of their own, which is the node's. Each router has another one. All of them
// are removed with the tests, however these end. SLB_TEST_BGP_CHURN=1h makes TestChurn run for that long.
package bgp
