// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"regexp"
	"strings"
)

// placeholder stands in a command for a word that can't be there: an empty one, an option, or one with characters that
// are not graphic.
const placeholder = "UNKNOWN"

// plain are words that every shell reads as they are, as arguments of a command.
var plain = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9/._:@%+,=-]*$`)

// Quote returns a word for a POSIX shell.
func Quote(word string) string {
	switch {
	case plain.MatchString(word):
		return word
	case word == "" || word[0] == '-' || Line(word) != word:
		return placeholder
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Command formats a command for an administrator to copy. The format is what a shell reads. Values are quoted, even in
// comments, which not every interactive shell has.
func Command(format string, values ...any) string {
	quoted := make([]any, len(values))
	for i, v := range values {
		quoted[i] = Quote(fmt.Sprint(v))
	}
	return fmt.Sprintf(format, quoted...)
}
