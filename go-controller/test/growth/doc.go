// SPDX-License-Identifier: Apache-2.0

// Package growth tests that the work for all tenants grows no faster than the input of one of them.
//
// It counts statements instead of measuring time: a pass over a snapshot runs in a test binary that counts how often
// each statement is executed (go test -covermode=count), so that the result depends on nothing but the code.
package growth
