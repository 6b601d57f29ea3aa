// SPDX-License-Identifier: Apache-2.0

// Package dataplane defines the interface that all dataplanes implement. A dataplane makes addresses reachable.
//
// Invariants:
//   - Every method is idempotent: calling it again with the same input writes nothing.
//   - A dataplane owns rows, routes or annotations by owner id and never modifies those of other owners.
//   - Configure precedes the Apply that needs it: a VIP whose shard is not in the newest topology is an error of that
//     key only.
package dataplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Change is the newest plan of a Service. A nil Want removes the Service.
type Change struct {
	Key  world.Key
	Want *plan.Service
}

// Dataplane applies plans. Its methods are called from one goroutine, unless they say otherwise.
type Dataplane interface {
	// Configure applies the whole base topology of the Services. If only some shards could not be configured, the
	// error is a [ShardsError]. If rows of some Services could not be written, it is a [ServicesError].
	Configure(ctx context.Context, topology *plan.Topology) error
	// Apply applies the changes and returns the keys that failed, or whose change is [Postponed].
	Apply(ctx context.Context, changes []Change) map[world.Key]error
	// Prune deletes what we own and for which keep returns false. It is called at start, on reconnect and hourly. If rows
	// of some Services could not be written, the error is a [ServicesError].
	Prune(ctx context.Context, keep func(world.Key) bool) error
	// Pending returns since when a Service has changes that were accepted but have not taken effect yet, as far as that is
	// observed here; the zero time if it has none. It may be called from any goroutine.
	Pending(key world.Key) time.Time
}

// ShardsError lists the shards that could not be configured, and why. All others were configured.
type ShardsError map[world.ShardID]string

func (e ShardsError) Error() string {
	texts := make([]string, 0, len(e))
	for id, why := range e {
		texts = append(texts, fmt.Sprintf("shard %s/%d: %s", id.Domain, id.Index, why))
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

// Postponed is the error of a change that is to be made at a later time, with the newest plan of then. It is no
// failure. If there is no plan any more, the Service is removed at once.
type Postponed struct{ Until time.Time }

func (e Postponed) Error() string { return "postponed until " + e.Until.Format(time.RFC3339) }

// ServicesError lists Services that have to be applied again, because rows that they need could not be written: Apply
// returns why.
type ServicesError struct {
	Services map[world.Key]bool
	// Other is what else has failed, nil if all else succeeded.
	Other error
}

func (e ServicesError) Error() string {
	text := "rows of " + world.Count(len(e.Services), "Service") + " could not be written"
	if e.Other != nil {
		text = e.Other.Error() + "; " + text
	}
	return text
}

func (e ServicesError) Unwrap() error { return e.Other }
