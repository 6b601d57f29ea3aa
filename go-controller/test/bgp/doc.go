// SPDX-License-Identifier: Apache-2.0

// Package bgp proves the speaker against FRR: each field of a session and of a route as it reaches the speaker, what the router
// must then say of it, and what must stay when something breaks. It needs root.
//
// The tests run in a network namespace of their own, that of the node; each router has another. Both go with the tests, however
// these end. SLB_TEST_BGP_CHURN=1h has TestChurn go on for as long; with the race detector, -parallel 1 keeps it to one speaker a
// process, as the daemon is.
package bgp
