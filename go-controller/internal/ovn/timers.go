// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"
	"strings"
	"time"

	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// staleTime is for how long after a change of the timers another client may write the former ones back: twice a minute,
// OVN-Kubernetes replaces all options of NB_Global by those that it has read a moment before, with the present time
// (setNbE2eTimestamp).
const staleTime = 10 * time.Second

// formerTimer is what external_ids of NB_Global had about a timer before it was changed or restored.
type formerTimer struct {
	memory  string
	changed time.Time
}

// setTimers adds changes of single keys of NB_Global. d.mu must be held.
func (d *Dataplane) setTimers(b *batch, builder *rows.Builder) error {
	for _, r := range b.view.all(nbGlobal) {
		global, ok := r.model.(*nbdb.NBGlobal)
		if !ok {
			continue
		}
		options, ids := builder.BFDOptions(global.Options, d.withFormerTimers(global, time.Now()))
		for _, c := range ids {
			if c.Old != "" && c.Old == global.ExternalIDs[c.Key] {
				d.formerTimers[c.Key] = formerTimer{c.Old, time.Now()}
			}
		}
		mutations := append(keyMutations("options", options), keyMutations("external_ids", ids)...)
		if len(mutations) > 0 {
			b.ops = append(b.ops, ovsdb.Operation{
				Op: ovsdb.OperationMutate, Table: nbGlobal, Where: byUUID(r.uuid), Mutations: mutations,
			})
		}
	}
	return nil
}

// withFormerTimers returns the external_ids of NB_Global. A timer that has its former value again, after a stale write
// of another client, is ours: otherwise it would stay indefinitely, as if that client had configured it.
func (d *Dataplane) withFormerTimers(global *nbdb.NBGlobal, now time.Time) map[string]string {
	ids := global.ExternalIDs
	for key, former := range d.formerTimers {
		_, ours, _ := strings.Cut(former.memory, ">")
		if now.Sub(former.changed) < staleTime && global.Options[rows.TimerOf(key)] == ours {
			ids = maps.Clone(ids)
			if ids == nil {
				ids = map[string]string{}
			}
			ids[key] = former.memory
		}
	}
	return ids
}

// keyMutations changes keys of a map. A deletion names the old value: if another client has changed the value in the
// meantime, that value is kept.
func keyMutations(column string, changes []rows.KeyChange) []ovsdb.Mutation {
	var out []ovsdb.Mutation
	for _, c := range changes {
		if c.Old != "" {
			out = append(out, *ovsdb.NewMutation(column, ovsdb.MutateOperationDelete, pair(c.Key, c.Old)))
		}
		if c.New != "" {
			out = append(out, *ovsdb.NewMutation(column, ovsdb.MutateOperationInsert, pair(c.Key, c.New)))
		}
	}
	return out
}

// pair returns a map with one key.
func pair(key, value string) ovsdb.OvsMap { return ovsdb.OvsMap{GoMap: map[any]any{key: value}} }
