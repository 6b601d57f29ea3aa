// SPDX-License-Identifier: Apache-2.0

package world

import "time"

// MoveTime is how long the move of shards on request may take.
const MoveTime = 30 * time.Second

// JoinTime is how long a node must have been a gateway of a shard before it becomes the first one on request. OVN sets
// up its routers meanwhile, and its BFD sessions start at one packet per second (RFC 5880 section 6.8.3).
const JoinTime = 3 * time.Second

// MoveRequest is the request of a user to move shards of a domain to a node.
type MoveRequest struct {
	// Text identifies the request: it is the text that contains it.
	Text   string
	Node   string
	Shards []int
	// Problem is why the text is not a request, empty if it is one.
	Problem string
	// Joining is set while the node has not been a gateway of all the shards for JoinTime.
	Joining bool
	// Expired is set if the move was not completed within MoveTime.
	Expired bool
}

// MoveResult is the progress of the request with a text. The zero value means that there is no request.
type MoveResult struct {
	Text    string
	State   MoveState
	Message string
}

// IsOver reports whether the request has no effect any more.
func (r MoveResult) IsOver() bool { return r.State == MoveCompleted || r.State == MoveFailed }

// MoveState is the state of a request to move shards.
type MoveState string

// States of requests. Package v1alpha1 defines their meanings.
const (
	MoveInProgress MoveState = "InProgress"
	MoveCompleted  MoveState = "Completed"
	MoveFailed     MoveState = "Failed"
)
