// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Line returns text in one line in which all characters are graphic. Others, including line feeds, tabs and overrides
// of the direction of writing, are escaped as in JSON.
func Line(text string) string { return escape(text, "") }

// escape escapes the characters that are neither graphic nor in kept. Invalid UTF-8 becomes U+FFFD.
func escape(text, kept string) string {
	safe := func(r rune) bool { return unicode.IsGraphic(r) || strings.ContainsRune(kept, r) }
	if strings.IndexFunc(text, func(r rune) bool { return !safe(r) || r == unicode.ReplacementChar }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if safe(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
