// SPDX-License-Identifier: Apache-2.0

package worldtest

// Rounds returns how often, or for how many objects, a test with one goroutine and fixed random numbers works: n, and a
// tenth of n under the race detector, which makes the test ten times slower and finds nothing in it.
func Rounds(n int) int {
	if raceDetector {
		return n / 10
	}
	return n
}
