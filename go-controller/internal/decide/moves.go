// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// move is a request to move shards: since when this process has known it, since when its node is a gateway of all the
// shards (the zero time if it is not), and its progress in the last pass.
type move struct {
	since, joined time.Time
	result        world.MoveResult
}

// withMoves returns the domains with the progress that requests to move shards had in the last pass. The statuses of
// the domains show it later, or not at all while the API server is away: a request that was over must not take effect
// again.
func (o *overlay) withMoves(w *world.Snapshot) []*world.Domain {
	moves := map[string]move{}
	out := slices.Clone(w.Domains)
	for i, d := range w.Domains {
		if d.Move == nil {
			continue
		}
		updated, request := *d, *d.Move
		now, known := o.moves[d.Name]
		if member := isGateway(w, d); !known || now.result.Text != d.Move.Text {
			now = move{since: w.Now, result: world.MoveResult{Text: d.Move.Text}}
			if member {
				now.joined = w.Now.Add(-world.JoinTime)
			}
		} else {
			updated.Moved = now.result
			if member && now.joined.IsZero() {
				now.joined = w.Now
			}
		}
		request.Joining = now.joined.IsZero() || w.Now.Before(now.joined.Add(world.JoinTime))
		request.Expired = !w.Now.Before(now.since.Add(world.MoveTime))
		updated.Move, out[i], moves[d.Name] = &request, &updated, now
	}
	o.moves = moves
	return out
}

// isGateway reports whether the node of a request is a gateway of all its shards.
func isGateway(w *world.Snapshot, d *world.Domain) bool {
	return !slices.ContainsFunc(d.Move.Shards, func(index int) bool {
		return !slices.Contains(w.ShardStates[world.ShardID{Domain: d.Name, Index: index}].Order, d.Move.Node)
	})
}

// recordMoves records the progress of requests to move shards. It returns when another pass is needed: when the node of
// a request has joined, or when the request expires. It returns the zero time if none is in progress.
func (o *overlay) recordMoves(w *world.Snapshot, layout *place.Layout) time.Time {
	var first time.Time
	for _, d := range layout.Domains {
		now, requested := o.moves[d.Spec.Name]
		if !requested {
			continue
		}
		now.result = d.Move
		o.moves[d.Spec.Name] = now
		if d.Move.IsOver() {
			continue
		}
		first = world.Earliest(first, now.since.Add(world.MoveTime))
		if at := now.joined.Add(world.JoinTime); at.After(w.Now) {
			first = world.Earliest(first, at)
		}
	}
	return first
}
