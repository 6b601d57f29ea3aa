// SPDX-License-Identifier: Apache-2.0

// Package neighbour asks a segment whether somebody has an address, without claiming it: no
// host learns anything from the question. And it tells a segment who has one.
package neighbour
