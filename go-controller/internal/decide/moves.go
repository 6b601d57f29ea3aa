// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// move is a request to move shards: since when this process has known it, and its progress in the last pass.
type move struct {
	since  time.Time
	result world.MoveResult
}

// withMoves returns the snapshot with the progress that requests to move shards had in the last pass. The statuses of
// the domains show it later, or not at all while the API server is away: a request that was over must not take effect
// again.
func (m *State) withMoves(w *world.Snapshot) *world.Snapshot {
	if len(m.moves) == 0 {
		return w
	}
	out := *w
	out.Domains = make([]*world.Domain, len(w.Domains))
	for i, d := range w.Domains {
		if last, known := m.moves[d.Name]; d.Move != nil && known && last.result.Text == d.Move.Text {
			twin, request := *d, *d.Move
			request.Expired = !w.Now.Before(last.since.Add(world.MoveTime))
			twin.Move, twin.Moved = &request, last.result
			d = &twin
		}
		out.Domains[i] = d
	}
	return &out
}

// saveMoves records the progress of requests to move shards. It returns when the first of them expires, or the zero
// time if none is in progress.
func (m *State) saveMoves(w *world.Snapshot, layout *place.Layout) time.Time {
	var first time.Time
	moves := map[string]move{}
	for _, d := range layout.Domains {
		if d.Move.State == "" {
			continue
		}
		now := move{w.Now, d.Move}
		if last, known := m.moves[d.Spec.Name]; known && last.result.Text == d.Move.Text {
			now.since = last.since
		}
		if moves[d.Spec.Name] = now; !d.Move.IsOver() {
			first = world.Earliest(first, now.since.Add(world.MoveTime))
		}
	}
	m.moves = moves
	return first
}
