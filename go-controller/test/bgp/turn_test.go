// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// inTurn is a speaker.Turn of three nodes without an API server. agent.turn has its own tests.
type inTurn struct {
	mu     sync.Mutex
	holder *nodeInTurn
	queue  []*nodeInTurn
}

type nodeInTurn struct {
	*inTurn
	speaker *speaker.Speaker
	// waited means that another node had the turn.
	waited bool
}

// Take implements speaker.Turn.
func (n *nodeInTurn) Take(string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder == nil {
		n.holder = n
	}
	if n.holder != n && !slices.Contains(n.queue, n) {
		n.queue, n.waited = append(n.queue, n), true
	}
	return n.holder == n
}

// Done implements speaker.Turn.
func (n *nodeInTurn) Done(peer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder != n {
		return
	}
	if n.holder = nil; len(n.queue) > 0 {
		n.holder, n.queue = n.queue[0], n.queue[1:]
		n.holder.speaker.Changed(peer)
	}
}

// An edit that needs new sessions on three nodes closes them one after another. The router never lacks more than one.
// The end of BFD is such an edit.
func TestEditsAreAppliedNodeByNode(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name string
		edit func(*bgp.Session)
	}{
		{"hold time", func(s *bgp.Session) { s.Neighbor.Hold = 30 * time.Second }},
		{"end of BFD", func(s *bgp.Session) { s.BFD = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			applyNodeByNode(t, newSite(t, 8+i), c.edit)
		})
	}
}

func applyNodeByNode(t *testing.T, s *site, edit func(*bgp.Session)) {
	t.Helper()
	order := &inTurn{}
	var nodes []*node
	var turns []*nodeInTurn
	session := func(host int) bgp.Session {
		c := s.session("tor", false, host)
		c.BFD = quickBFD()
		return c
	}
	for host := 2; host <= 4; host++ {
		s.configure(t, s.neighbor(false, host, nodeASN)...)
		own := &nodeInTurn{inTurn: order}
		n := newNode(t, speaker.Options{Turn: own, BFD: &record{state: "Up"}})
		own.speaker = n.Speaker
		n.want(session(host))
		nodes, turns = append(nodes, n), append(turns, own)
	}
	for _, n := range nodes {
		n.established(t, "tor")
	}
	for i, n := range nodes {
		c := session(2 + i)
		edit(&c)
		n.want(c)
	}
	var all []outage
	for _, n := range nodes {
		eventually(t, func(context.Context) error {
			if len(n.outages("tor")) == 0 {
				return fmt.Errorf("state %+v", n.state("tor"))
			}
			return nil
		})
	}
	order.mu.Lock()
	defer order.mu.Unlock()
	for i, n := range nodes {
		all = append(all, n.outages("tor")...)
		if n.state("tor").Outdated || n.wasOutdated("tor") != turns[i].waited {
			t.Errorf("node %d waited: %t, was reported as outdated: %t, and at last %+v", i, turns[i].waited,
				n.wasOutdated("tor"), n.state("tor"))
		}
	}
	slices.SortFunc(all, func(a, b outage) int { return a.from.Compare(b.from) })
	for i, o := range all[1:] {
		if o.from.Before(all[i].to) {
			t.Errorf("two sessions are down at once: from %s to %s, and from %s to %s", all[i].from, all[i].to, o.from, o.to)
		}
	}
}

// wasOutdated reports whether an Established session ever had other settings than wanted.
func (n *node) wasOutdated(peer string) bool {
	n.recording.Lock()
	defer n.recording.Unlock()
	return slices.ContainsFunc(n.history[peer], func(s speaker.State) bool { return s.Outdated })
}

// outage is a time between two terms of a session in which it was Established.
type outage struct{ from, to time.Time }

// outages returns the outages of a session that have ended. They begin when the speaker had closed the session, and end
// when the next one was Established, which is before it returns the turn.
func (n *node) outages(peer string) (all []outage) {
	n.recording.Lock()
	defer n.recording.Unlock()
	var from time.Time
	was := speaker.Idle
	for _, s := range n.history[peer] {
		switch {
		case was == speaker.Established && s.Phase != speaker.Established:
			from = s.Since
		case was != speaker.Established && s.Phase == speaker.Established && !from.IsZero():
			all = append(all, outage{from, s.Since})
		}
		was = s.Phase
	}
	return all
}
