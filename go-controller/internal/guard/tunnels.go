// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// tunnelCheckInterval is the interval between checks of the BFD sessions. Only statuses wait for it.
	tunnelCheckInterval = time.Second
	// tunnelSettleTime is how long a session must be up or down to count as such. The restart of ovs-vswitchd or
	// ovn-controller takes sessions down for less.
	tunnelSettleTime = 5 * time.Second
	// tunnelReportInterval is the minimum time between two reports, however many sessions flap.
	tunnelReportInterval = 10 * time.Second
)

// tunnels observes the BFD sessions of OVN's tunnels to other nodes.
type tunnels struct {
	// read returns whether a session with each chassis is up, and false while that is unknown.
	read func() (map[string]bool, bool)
	// isGateway reports whether the node may be a gateway, so that it has a session with each node.
	isGateway func() bool
	report    func(*world.Tunnels)
	// sessions are the settled states by chassis.
	sessions map[string]session
	// reported is the last report, nil if there is none. readAt is when the sessions were last read, at first when they
	// were found unreadable, and next when a report may be written again. withdrawn means that nothing is reported
	// because readAt is too long ago.
	reported     *world.Tunnels
	readAt, next time.Time
	withdrawn    bool
}

// session is the settled state of the sessions with a chassis. since is when another state was first observed, the zero
// time if none is.
type session struct {
	down  bool
	since time.Time
}

func (t *tunnels) run(ctx context.Context) {
	tick := time.NewTicker(tunnelCheckInterval)
	defer tick.Stop()
	for {
		t.check(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// check reports the settled states if they have changed. While they can't be read, the last report remains valid for a
// limited time. The first report waits until the states that were found have settled. Until then, what a predecessor
// reported counts.
func (t *tunnels) check(now time.Time) {
	up, known := t.read()
	if !known {
		if t.readAt.IsZero() {
			t.readAt = now
		}
		if !t.withdrawn && now.Sub(t.readAt) > unreadableAfter {
			t.reported, t.sessions, t.withdrawn = nil, nil, true
			t.report(nil)
		}
		return
	}
	t.withdrawn = false
	if t.sessions == nil {
		t.sessions, t.next = map[string]session{}, now.Add(tunnelReportInterval)
	}
	t.readAt = now
	t.observe(up, now)
	is := t.settled()
	if now.Before(t.next) || t.reported.Equal(is) {
		return
	}
	if is.AllDown > 0 || len(is.Down) > 0 {
		klog.InfoS("OVN's tunnels are down", "all", is.AllDown, "chassis", is.Down[:min(len(is.Down), maxLoggedChassis)])
	}
	t.reported, t.next = is, now.Add(tunnelReportInterval)
	t.report(is)
}

// maxLoggedChassis bounds one message in the log.
const maxLoggedChassis = 5

// observe records the present states. A new session counts as up until it has been down for a while.
func (t *tunnels) observe(up map[string]bool, now time.Time) {
	maps.DeleteFunc(t.sessions, func(chassis string, _ session) bool { _, is := up[chassis]; return !is })
	for chassis, isUp := range up {
		s := t.sessions[chassis]
		switch {
		case s.down != isUp:
			s.since = time.Time{}
		case s.since.IsZero():
			s.since = now
		case now.Sub(s.since) >= tunnelSettleTime:
			s = session{down: !isUp}
		}
		t.sessions[chassis] = s
	}
}

// settled returns the report about the settled states.
func (t *tunnels) settled() *world.Tunnels {
	var down []string
	for _, chassis := range slices.Sorted(maps.Keys(t.sessions)) {
		if t.sessions[chassis].down {
			down = append(down, chassis)
		}
	}
	switch {
	case len(down) > 1 && len(down) == len(t.sessions):
		return &world.Tunnels{AllDown: len(down)}
	case len(down) == len(t.sessions) || !t.isGateway():
		return &world.Tunnels{}
	}
	return &world.Tunnels{Down: down}
}

// hasLocalnets reports whether OVN has ports of L2Domains on the bridges of the node.
func hasLocalnets(networks map[string]ovn.Uplinks) bool {
	for _, uplinks := range networks {
		if len(uplinks.Patches) > 0 {
			return true
		}
	}
	return false
}
