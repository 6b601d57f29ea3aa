// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"slices"
	"time"

	"github.com/ovn-org/libovsdb/model"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
)

// keyRepairPause is the time between two repairs of tunnel keys.
const keyRepairPause = time.Second

// keyChecker verifies the tunnel keys that must be equal in all zones, with interconnect. ovn-northd assigns those of
// the ports that gateways claim, and nearly always the lowest ones in order. Replies from a zone with other keys would
// be lost. A router that is deleted and created again gets new keys.
type keyChecker struct {
	d    *Dataplane
	wake chan struct{}
}

func (k *keyChecker) check(m model.Model) {
	if port, ok := m.(*sbdb.PortBinding); ok && isMiskeyed(port) {
		k.signal()
	}
}

func (k *keyChecker) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// OnAdd implements cache.EventHandler.
func (k *keyChecker) OnAdd(_ string, m model.Model) { k.check(m) }

// OnUpdate implements cache.EventHandler.
func (k *keyChecker) OnUpdate(_ string, _, m model.Model) { k.check(m) }

// OnDelete implements cache.EventHandler.
func (k *keyChecker) OnDelete(string, model.Model) {}

func isMiskeyed(port *sbdb.PortBinding) bool {
	_, ok := rows.ParseReturnRedirectPort(port.LogicalPort)
	return ok && port.TunnelKey != rows.ReturnRedirectKey
}

// Miskeyed returns the names of the return routers whose redirect port has another tunnel key than in other zones,
// sorted. It may be called from any goroutine.
func (d *Dataplane) Miskeyed() []string {
	if d.sb == nil {
		return nil
	}
	_, sb, err := d.sb.current()
	if err != nil {
		return nil
	}
	var routers []string
	sb.each(portBinding, func(_ string, m model.Model) {
		if port, ok := m.(*sbdb.PortBinding); ok && isMiskeyed(port) {
			router, _ := rows.ParseReturnRedirectPort(port.LogicalPort)
			routers = append(routers, router)
		}
	})
	slices.Sort(routers)
	return routers
}

// repairKeys deletes routers with wrong keys, until ctx ends. Like every other row of ours that is missing, they are
// then written again.
func (d *Dataplane) repairKeys(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.keys.wake:
		}
		for _, name := range d.Miskeyed() {
			klog.FromContext(ctx).Info("Recreating a router whose tunnel keys differ from those of other zones", "router", name)
			if err := d.deleteRouter(ctx, name); err != nil {
				klog.FromContext(ctx).Error(err, "Failed to delete a router", "router", name)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(keyRepairPause):
		}
		if len(d.Miskeyed()) > 0 {
			d.keys.signal()
		}
	}
}

// deleteRouter deletes a router of ours.
func (d *Dataplane) deleteRouter(ctx context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commit(ctx, []opsFunc{func(b *batch) error {
		return removeAll(b.view.filter(rows.Router, func(m model.Model) bool { return isOwned(m) && nameOf(m) == name }))(b)
	}})[0]
}
