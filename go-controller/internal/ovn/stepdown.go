// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"fmt"
	"slices"

	"github.com/ovn-org/libovsdb/ovsdb"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

// With interconnect, the database of a node that was off has the order of gateways of before. If the node was the
// active gateway of a shard, ovn-controller claims the shard again although another gateway has it by now, and both
// answer. The present order is published through the API server, which may be out of reach for long after a boot.
//
// Therefore the rows of the node's own chassis contain the boot in which their order was written (rows.KeyBoot). In
// another boot, the chassis steps down: it becomes the last gateway of the shard in its own zone. Configure writes the
// published order and the present boot. A restart of this process or of the database has the same boot, and no effect.

// stepDownAfterBoot steps down each time the northbound database has been read, until ctx ends.
func (d *Dataplane) stepDownAfterBoot(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.nbSynced:
		}
		log := klog.FromContext(ctx)
		if shards, err := d.stepDown(ctx); err != nil {
			log.Error(err, "Failed to step down as the gateway of shards after a boot", "shards", shards)
		} else if len(shards) > 0 {
			log.Info("Stepped down as the gateway of shards after a boot, until their order has been read", "shards", shards)
		}
	}
}

// stepDown puts the chassis of the zone behind the other gateways of the shards whose order was written in another
// boot, in one transaction. It returns these shards, sorted. Shards without another gateway are left alone.
func (d *Dataplane) stepDown(ctx context.Context) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.boot == "" {
		return nil, nil // Every row has another one.
	}
	c, v, err := d.nb.current()
	if err != nil || !d.ownsZone(v) {
		return nil, err // the next connection is another attempt
	}
	members := v.owned(rows.HAChassis)
	var shards []string
	var ops []ovsdb.Operation
	for _, r := range members {
		boot, shard := r.externalIDs()[rows.KeyBoot], r.externalIDs()[rows.KeyShard]
		others := slices.ContainsFunc(members, func(o record) bool {
			return o.uuid != r.uuid && o.externalIDs()[rows.KeyShard] == shard && isGateway(o)
		})
		if boot == "" || boot == d.boot || !others || !isGateway(r) {
			continue
		}
		shards = append(shards, shard)
		ops = append(ops, ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: r.table,
			// Configure may have written the row since it was read.
			Where: append(byUUID(r.uuid), ovsdb.NewCondition("external_ids", ovsdb.ConditionIncludes, pair(rows.KeyBoot, boot))),
			Row:   ovsdb.Row{"priority": rows.SteppedDown}})
	}
	if len(ops) == 0 {
		return nil, nil
	}
	slices.Sort(shards)
	err = send(ctx, c, ops)
	d.transacted(err)
	if err != nil {
		return shards, fmt.Errorf("step down: %w", err)
	}
	return shards, nil
}

func isGateway(r record) bool {
	priority, _ := r.column("priority").(int)
	return rows.IsGatewayPriority(priority)
}
