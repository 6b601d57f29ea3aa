// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// observed runs the observation of tunnels on a virtual clock. The sessions may be changed whenever the clock stands.
type observed struct {
	up      map[string]bool
	unread  bool
	standby bool
	reports []string
}

func (o *observed) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	is := &tunnels{
		read:      func() (map[string]bool, bool) { return o.up, !o.unread },
		isGateway: func() bool { return !o.standby },
		report: func(is *world.Tunnels) {
			text := "withdrawn"
			if is != nil {
				text = fmt.Sprintf("%d %v", is.AllDown, is.Down)
			}
			o.reports = append(o.reports, fmt.Sprintf("%s: %s", time.Since(began), text))
		},
	}
	go is.run(t.Context())
}

// expect fails unless these are the reports since the last call.
func (o *observed) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if fmt.Sprint(o.reports) != fmt.Sprint(want) {
		t.Errorf("reports %q, want %q", o.reports, want)
	}
	o.reports = nil
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
		o.up = map[string]bool{"c2": true, "c3": false, "c4": true}
		after(4 * time.Second)
		o.up = map[string]bool{"c2": true, "c3": true, "c4": true}
		after(10 * time.Second)
		o.expect(t)
		o.up = map[string]bool{"c2": true, "c3": false, "c4": true}
		after(10 * time.Second)
		o.expect(t, "40s: 0 [c3]")
		o.up = map[string]bool{"c2": false, "c3": false, "c4": false}
		after(10 * time.Second)
		o.expect(t, "50s: 3 []")
		o.up = map[string]bool{"c2": true, "c3": true, "c4": true}
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
		for range 300 {
			o.up = map[string]bool{"c2": true, "c3": !o.up["c3"]}
			after(time.Second)
		}
		o.expect(t)
		o.up = map[string]bool{}
		for i := range 50 {
			o.up[fmt.Sprintf("n%02d", i)] = true
		}
		after(10 * time.Second)
		for i := range 50 {
			o.up[fmt.Sprintf("n%02d", i)] = i == 0
			after(time.Second)
		}
		after(time.Minute)
		if n := len(o.reports); n < 2 || n > 7 {
			t.Errorf("%d reports in a minute: %q", n, o.reports)
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
		o.expect(t)
		o.unread = false
		after(20 * time.Second)
		o.expect(t, "1h0m11s: 2 []")
		o.unread = true
		after(29 * time.Second)
		o.unread = false
		after(10 * time.Second)
		o.expect(t)
		o.unread = true
		after(time.Minute)
		o.unread = false
		after(20 * time.Second)
		o.expect(t, "1h1m30s: withdrawn", "1h2m10s: 2 []")
	})
}
