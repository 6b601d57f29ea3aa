// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A claim is reported when it is made, and once more when it has lasted for the settle time. One that another chassis
// has replaced meanwhile has not settled by then.
func TestClaimsSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports atomic.Int64
		s := &claimObserver{d: &Dataplane{changed: func(kind EventKind) {
			if kind == ShardStates {
				reports.Add(1)
			}
		}}, settle: settleTime, claims: map[string]observedClaim{}}
		port := rows.RedirectPort(world.ShardID{Domain: "lan"})
		claim := func(chassis string) { s.OnUpdate("", nil, &sbdb.PortBinding{LogicalPort: port, Chassis: &chassis}) }
		start := time.Now()
		is := func(wantReports int64, wantSettled bool) {
			t.Helper()
			synctest.Wait()
			if n := reports.Load(); n != wantReports || s.isSettled(port) != wantSettled {
				t.Errorf("after %s: %d reports, settled %t; want %d, %t", time.Since(start), n, s.isSettled(port),
					wantReports, wantSettled)
			}
		}
		claim("c1")
		is(1, false)
		<-time.After(settleTime - time.Second)
		claim("c2")
		is(2, false)
		<-time.After(time.Second) // since the first one
		is(3, false)
		<-time.After(settleTime - time.Second - time.Nanosecond)
		is(3, false)
		<-time.After(time.Nanosecond)
		is(4, true)
		<-time.After(time.Hour)
		is(4, true)
	})
}
