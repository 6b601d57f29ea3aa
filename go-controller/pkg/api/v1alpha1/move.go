// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// MaxMoveRequest is the maximum length of a MoveRequest in bytes.
const MaxMoveRequest = 1024

// MoveRequest is the value of AnnotationMove on an L2Domain, as JSON.
type MoveRequest struct {
	// Node is the name of the gateway to which the shards move, Shards are their indexes.
	Node   string  `json:"node"`
	Shards []int32 `json:"shards"`
	// ID distinguishes requests that are otherwise equal. It may be empty.
	ID string `json:"id,omitempty"`
}

// ParseMoveRequest reads a MoveRequest. An error names the field and the value.
func ParseMoveRequest(text string) (MoveRequest, error) {
	if len(text) > MaxMoveRequest {
		return MoveRequest{}, fmt.Errorf("has %d bytes, more than %d", len(text), MaxMoveRequest)
	}
	var r MoveRequest
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil || decoder.More() {
		return MoveRequest{}, fmt.Errorf(`%s is not of the form {"node":"NODE","shards":[INDEX]}`, text)
	}
	if r.Node == "" {
		return MoveRequest{}, fmt.Errorf("node: is missing in %s", text)
	}
	if len(r.Shards) == 0 {
		return MoveRequest{}, fmt.Errorf("shards: is missing or empty in %s", text)
	}
	slices.Sort(r.Shards)
	r.Shards = slices.Compact(r.Shards)
	return r, nil
}
