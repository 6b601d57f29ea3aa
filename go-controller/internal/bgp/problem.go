// SPDX-License-Identifier: Apache-2.0

package bgp

import "strings"

// MoreSpecific reports whether the error of a session says more about the cause than that of another node's session
// with the same router; an empty one says least. When a router refuses all nodes for one reason, some have not got that
// far: their path or BFD fails for the moment.
func MoreSpecific(problem, than string) bool { return specificity(problem) > specificity(than) }

func specificity(problem string) int {
	text := strings.ToLower(problem)
	bfd := strings.Contains(text, "bfd")
	switch {
	case text == "":
		return 0
	case strings.Contains(text, "as number"), strings.Contains(text, "bad peer as"):
		return 4
	case strings.Contains(text, ReceivedNotification) && !bfd:
		return 3 // the router has answered
	case bfd:
		return 1
	}
	return 2
}

// ReceivedNotification is in the error of a session that the router ended.
const ReceivedNotification = "received notification"
