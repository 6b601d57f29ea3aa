// SPDX-License-Identifier: Apache-2.0

// Package dataplane is the interface that the ways of making addresses reachable share.
//
// Invariants:
//   - Every method is idempotent: calling it again with the same input writes nothing.
//   - A dataplane owns rows, routes or annotations by owner id and never touches what
//     others own.
//   - Configure comes before the Apply that needs it: a VIP whose shard the newest
//     fabric does not have is an error of that key, not of others.
package dataplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Change is the newest plan of a Service; a nil Want removes it.
type Change struct {
	Key  world.Key
	Want *plan.Service
}

// Dataplane makes plans true. Its methods are called from one goroutine.
type Dataplane interface {
	// Configure sets the ground that Services stand on, whole. If some shards have no place in it
	// and all others are as wanted, the error is a [ShardsError].
	Configure(ctx context.Context, fabric *plan.Fabric) error
	// Apply makes the changes true and returns the keys that failed.
	Apply(ctx context.Context, changes []Change) map[world.Key]error
	// Prune removes what we own and keep does not name: at start, on reconnect, hourly.
	Prune(ctx context.Context, keep func(world.Key) bool) error
}

// ShardsError says which shards could not be configured, and why; all others could.
type ShardsError map[world.ShardID]string

func (e ShardsError) Error() string {
	texts := make([]string, 0, len(e))
	for id, why := range e {
		texts = append(texts, fmt.Sprintf("shard %s/%d: %s", id.Domain, id.Index, why))
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}
