// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMoveRequest(t *testing.T) {
	for text, want := range map[string]MoveRequest{
		`{"node":"n2","shards":[7]}`:                {Node: "n2", Shards: []int32{7}},
		` {"node":"n2","shards":[7,0,7],"id":"x"} `: {Node: "n2", Shards: []int32{0, 7}, ID: "x"},
	} {
		got, err := ParseMoveRequest(text)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, d)
		}
	}
	for text, want := range map[string]string{
		"":                                    "is not of the form",
		"n2":                                  "n2 is not of the form",
		`{"node":"n2","shards":["7"]}`:        "is not of the form",
		`{"node":"n2","shards":[7]} {}`:       "is not of the form",
		`{"node":"n2","shards":[7],"to":1}`:   "is not of the form",
		`{"node":"n2","shards":[2147483648]}`: "is not of the form",
		`{"shards":[7]}`:                      `node: is missing in {"shards":[7]}`,
		`{"node":"n2"}`:                       "shards: is missing or empty",
		strings.Repeat("x", 2000):             "has 2000 bytes, more than 1024",
	} {
		if _, err := ParseMoveRequest(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
