// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"net/netip"
	"testing"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A tenant may list prefixes as large as the pool. A pass does not examine all of its addresses, and allocates.
func TestListedAddressesAreSkippedToALimit(t *testing.T) {
	w := snapshotShared(sharing("one", "a", 2, 80, 1, 0), sharing("two", "b", 1, 80, 1, 0))
	w.Listed.Add([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	d := Allocate(w, noShard)
	for _, s := range w.Services {
		if got := d.Services[s.Key]; len(got.Addrs) != 1 {
			t.Errorf("%s: %+v", s.Key, got)
		}
	}
	free := &d.allocator.byName["external"].v4
	if at := free.next.As4(); len(free.last) != maxLast || int(at[2])<<8 > maxLast+drawWindow {
		t.Errorf("%d addresses are drawn last, and the cursor is at %s", len(free.last), free.next)
	}
	o, ok := d.Add(&world.Service{Key: world.Key{Name: "c"}, Families: []world.Family{world.IPv4}})
	if !ok || len(o.Addrs) != 1 || len(free.last) != maxLast {
		t.Errorf("%d addresses are drawn last after %+v", len(free.last), o)
	}
}

// A prefix of a long list may contain all free addresses. Those that are known to be listed come after the others.
func TestAddressesThatAreListedThemselvesComeLast(t *testing.T) {
	w := snapshotShared()
	w.Pools[0].Ranges = []netipx.IPRange{netipx.MustParseIPRange("10.60.0.0-10.60.0.9")}
	w.Listed.Add([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	free := Allocate(w, noShard)
	first := &world.Service{Key: world.Key{Name: "c"}, Families: []world.Family{world.IPv4}}
	o, _ := free.Add(first)
	w.Listed.Add([]netip.Prefix{netip.PrefixFrom(o.Addrs[0], 32)})
	again, _ := Allocate(w, noShard).Add(first)
	if len(again.Addrs) != 1 || again.Addrs[0] == o.Addrs[0] {
		t.Errorf("%v is drawn first although it is listed, before %v", o.Addrs, again.Addrs)
	}
}
