// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// checkText returns an error if a value has text that a database can't store: ovsdb-server refuses a whole message with
// a NUL character and ends the connection, and JSON has no text that is not UTF-8 (RFC 7047 section 3.1, RFC 8259
// section 8.1).
func checkText(value any) error {
	var texts []string
	switch v := value.(type) {
	case string:
		texts = []string{v}
	case *string:
		if v != nil {
			texts = []string{*v}
		}
	case []string:
		texts = v
	case map[string]string:
		for key, text := range v {
			texts = append(texts, key, text)
		}
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("text %q has a NUL character or is no UTF-8", text)
		}
	}
	return nil
}
