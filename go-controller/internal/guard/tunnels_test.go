// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// observed runs the observation of tunnels on a virtual clock. The sessions may be changed whenever the clock stands.
type observed struct {
	standby bool

	mu      sync.Mutex
	up      map[string]bool
	unread  bool
	reports []string
}

func (o *observed) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	is := &tunnels{
		read: func() (map[string]bool, bool) {
			o.mu.Lock()
			defer o.mu.Unlock()
			return maps.Clone(o.up), !o.unread
		},
		isGateway: func() bool { return !o.standby },
		report: func(is *world.Tunnels) {
			text := "withdrawn"
			if is != nil {
				text = fmt.Sprintf("%d %v", is.AllDown, is.Down)
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.reports = append(o.reports, fmt.Sprintf("%s: %s", time.Since(began), text))
		},
	}
	go is.run(t.Context())
}

// set changes the state of sessions.
func (o *observed) set(up map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.up = up
}

// readable says whether the state of sessions can be read.
func (o *observed) readable(is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unread = !is
}

// take returns the reports since the last call.
func (o *observed) take() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	reports := o.reports
	o.reports = nil
	return reports
}

// expect fails unless these are the reports since the last call.
func (o *observed) expect(t *testing.T, want ...string) {
	t.Helper()
	if reports := o.take(); fmt.Sprint(reports) != fmt.Sprint(want) {
		t.Errorf("reports %q, want %q", reports, want)
	}
}

// after lets virtual time pass.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestTunnelsAreReportedWhenTheirStateHasSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &observed{up: map[string]bool{"c2": true, "c3": true, "c4": true}}
		o.run(t)
		after(20 * time.Second)
		o.expect(t, "10s: 0 []")
		after(500 * time.Millisecond) // between two checks
		o.set(map[string]bool{"c2": true, "c3": false, "c4": true})
		after(4 * time.Second)
		o.set(map[string]bool{"c2": true, "c3": true, "c4": true})
		after(10 * time.Second)
		o.expect(t)
		o.set(map[string]bool{"c2": true, "c3": false, "c4": true})
		after(10 * time.Second)
		o.expect(t, "40s: 0 [c3]")
		o.set(map[string]bool{"c2": false, "c3": false, "c4": false})
		after(10 * time.Second)
		o.expect(t, "50s: 3 []")
		o.set(map[string]bool{"c2": true, "c3": true, "c4": true})
		after(10 * time.Second)
		o.expect(t, "1m0s: 0 []")
		after(time.Hour)
		o.expect(t)
	})
}

// A session that flaps faster than its state settles causes no write, and many that settle one after another cause one
// write per interval.
func TestFlappingTunnelsAreReportedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &observed{up: map[string]bool{"c2": true, "c3": true}}
		o.run(t)
		after(20 * time.Second)
		o.expect(t, "10s: 0 []")
		for i := range 300 {
			o.set(map[string]bool{"c2": true, "c3": i%2 == 1})
			after(time.Second)
		}
		o.expect(t)
		up := map[string]bool{}
		for i := range 50 {
			up[fmt.Sprintf("n%02d", i)] = true
		}
		o.set(maps.Clone(up))
		after(10 * time.Second)
		for i := range 50 {
			up[fmt.Sprintf("n%02d", i)] = i == 0
			o.set(maps.Clone(up))
			after(time.Second)
		}
		after(time.Minute)
		if reports := o.take(); len(reports) < 2 || len(reports) > 7 {
			t.Errorf("%d reports in a minute: %q", len(reports), reports)
		}
	})
}

// A node that is no gateway has sessions with gateways only: one of them that is down is not reported, all are. With a
// single session, either end may be cut off.
func TestWhichTunnelsAreReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		standby bool
		up      map[string]bool
		want    string
	}{
		{"no gateway, one of two", true, map[string]bool{"c2": true, "c3": false}, "10s: 0 []"},
		{"no gateway, both", true, map[string]bool{"c2": false, "c3": false}, "10s: 2 []"},
		{"a gateway, one of two", false, map[string]bool{"c2": true, "c3": false}, "10s: 0 [c3]"},
		{"a gateway, the only one", false, map[string]bool{"c2": false}, "10s: 0 []"},
		{"a gateway without sessions", false, map[string]bool{}, "10s: 0 []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := &observed{up: c.up, standby: c.standby}
				o.run(t)
				after(time.Minute)
				o.expect(t, c.want)
			})
		})
	}
}

// What can't be observed is unknown: the report is withdrawn when it is old, not before.
func TestTunnelsThatCannotBeReadAreWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &observed{up: map[string]bool{"c2": false, "c3": false}, unread: true}
		o.run(t)
		after(time.Hour)
		o.expect(t, "31s: withdrawn") // what a predecessor reported
		o.readable(true)
		after(20 * time.Second)
		o.expect(t, "1h0m11s: 2 []")
		o.readable(false)
		after(29 * time.Second)
		o.readable(true)
		after(10 * time.Second)
		o.expect(t)
		o.readable(false)
		after(time.Minute)
		o.readable(true)
		after(20 * time.Second)
		o.expect(t, "1h1m30s: withdrawn", "1h2m10s: 2 []")
	})
}
