// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"strings"
)

// Some returns the first names of a list for messages, and how many more there are: "n1, n2 and 3 more".
func Some(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Count returns a number and a noun for messages: "1 node", "3 nodes". The noun is in the singular and has a regular
// plural.
func Count[N int | int32 | int64 | uint8](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
