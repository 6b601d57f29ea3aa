// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// databases are OVN's databases, of which only what they announce can be read.
type databases struct {
	OVNDataplane
	announced map[netip.Addr]bool
}

func (databases) ShardStates() (map[world.ShardID]world.ShardState, bool) { return nil, false }
func (databases) Bridges() map[string]world.Bridges                       { return nil }
func (d *databases) Announced([]world.Key) map[netip.Addr]bool            { return d.announced }
func (databases) Misplaced() map[netip.Addr]bool                          { return nil }

// What OVN announced last is known while the connection is down: otherwise addresses would be withdrawn that it
// announces although the namespace has the label of a primary network by now. It does not count as announced: another
// Service may have got the address meanwhile, and it is to be probed.
func TestAnnouncedAddressesAreKnownWithoutConnection(t *testing.T) {
	a := netip.MustParseAddr("10.50.0.100")
	d := &databases{}
	o := &ovnObserver{OVNDataplane: d}
	for i, step := range []struct {
		read map[netip.Addr]bool
		last bool
	}{{nil, false}, {map[netip.Addr]bool{a: true}, true}, {nil, true}, {map[netip.Addr]bool{}, false}, {nil, false}} {
		var w world.Snapshot
		d.announced = step.read
		if o.Observe(&w); !maps.Equal(w.Announced, step.read) || (w.Announced == nil) != (step.read == nil) {
			t.Errorf("step %d: announced %v, want %v", i, w.Announced, step.read)
		}
		if w.LastAnnounced[a] != step.last {
			t.Errorf("step %d: last announced %v, want %t", i, w.LastAnnounced, step.last)
		}
	}
}
