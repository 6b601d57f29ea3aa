// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A Service that changes faster than ovn-northd translates waits all the time. That is no reason to take ovn-northd for
// dead, which a tenant could have all zones report: it counts from its last translation.
func TestNorthdIsNotStalledByAServiceThatAlwaysChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 100 * time.Millisecond
		r := &revisions{translated: func([]world.Key) {}}
		key := world.Key{Namespace: "shop", Name: "web"}
		for n := uint64(1); n <= 100; n++ {
			r.record(n)
			r.mu.Lock()
			r.wait(key, time.Now())
			r.mu.Unlock()
			<-time.After(every)
			r.observe(&sbdb.AddressSet{Addresses: rows.Revision(n - 1).Columns["addresses"].([]string)})
			if waits := time.Since(r.stalled()); waits > every {
				t.Fatalf("transaction %d: ovn-northd translates nothing for %s", n, waits)
			}
		}
		<-time.After(time.Minute)
		if waits := time.Since(r.stalled()); waits != time.Minute {
			t.Errorf("ovn-northd stands still: %s, want 1m0s", waits)
		}
	})
}
