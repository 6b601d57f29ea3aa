// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"testing"
	"time"
)

func TestNotificationIsKeptOverUnexplainedFailures(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		first, second reasonKind
		after         time.Duration
		keeps         bool
	}{
		{standing, unexplained, time.Second, true},
		{standing, unexplained, 24 * time.Hour, true},
		{standing, unreachable, notificationFor - 1, true},
		{standing, unreachable, notificationFor, false},
		{standing, detected, time.Second, false},
		{standing, transient, time.Second, false},
		{standing, standing, time.Second, false},
		{transient, unexplained, notificationFor - 1, true},
		{transient, unexplained, notificationFor, false},
		{transient, unreachable, notificationFor - 1, true},
		{transient, detected, time.Second, false},
		{detected, unexplained, time.Second, false},
		{detected, unreachable, time.Second, false},
		{unreachable, unexplained, time.Second, false},
		{unexplained, unreachable, time.Second, false},
	} {
		first := failure{reason: reason{text: "first", kind: c.first}, at: start}
		second := failure{reason: reason{text: "second", kind: c.second}, at: start.Add(c.after)}
		want := second
		if c.keeps {
			want = first
			if c.second == unreachable {
				want.unanswered = "second"
			}
		}
		if got := first.then(second); got != want {
			t.Errorf("kind %d after kind %d and %s: %+v, want %+v", c.second, c.first, c.after, got, want)
		}
		if first.expire(); first.then(second) != second {
			t.Errorf("kind %d does not supersede kind %d of before a session", c.second, c.first)
		}
	}
}

// A router that was shut down in good order may come back with another password: then it does not answer.
func TestNotificationIsReportedWithWhatFollowed(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	first := failure{reason: reason{text: "received notification", kind: transient}, at: start}
	next := failure{reason: reason{text: "i/o timeout", kind: unreachable}, at: start.Add(time.Second)}
	got := first.then(next).message()
	if want := "received notification; since then: i/o timeout"; got != want {
		t.Errorf("reported %q, want %q", got, want)
	}
}
