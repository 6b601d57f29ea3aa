// SPDX-License-Identifier: Apache-2.0

package ovn

import "testing"

// ovsdb-server would end the connection, and with it fail whatever else is in the transaction.
func TestTextThatADatabaseCannotStoreIsRefused(t *testing.T) {
	bad, good := "c3\x00", "c3 \u00fc"
	for _, text := range []string{bad, "c3\xff"} {
		for _, value := range []any{text, &text, []string{good, text}, map[string]string{"k": text},
			map[string]string{text: ""}} {
			if _, err := new(batch).native(value); err == nil {
				t.Errorf("%T with %q is written", value, text)
			}
		}
	}
	for _, value := range []any{good, &good, (*string)(nil), []string{good}, map[string]string{good: good}, 1, true} {
		if _, err := new(batch).native(value); err != nil {
			t.Errorf("%T: %v", value, err)
		}
	}
}
