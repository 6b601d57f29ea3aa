// SPDX-License-Identifier: Apache-2.0

package frrk8s_test

import (
	"testing"
	"time"
)

// An edit of a field in which all objects of a session must agree, in a large cluster.
func editedSession() (s *site, present func(node int) bool, edit func()) {
	s = newSite(many(300, 400))
	first := s.world.Services[0].Assigned[0]
	present = func(node int) bool { return s.advertises(nodeName(node), first) }
	return s, present, func() { s.world.Peers[0].Hold = 30 * time.Second }
}

// The routes of a node are absent only while the objects of its bucket are written.
func TestSessionEditReplacesBucketAfterBucket(t *testing.T) {
	s, present, edit := editedSession()
	s.settle(t)
	edit()
	absent := map[int]int{}
	s.wrote = func() {
		for n := range s.world.Nodes {
			if !present(n) {
				absent[n]++
			}
		}
	}
	if refused := s.settle(t); refused > 0 {
		t.Errorf("%d writes refused", refused)
	}
	inBucket := 0
	for _, c := range s.objects {
		if c.Nodes[0] == nodeName(0) {
			inBucket++
		}
		if got := c.Spec.BGP.Routers[0].Neighbors[0].HoldTime.Duration; got != 30*time.Second {
			t.Fatalf("%s has hold time %s", c.Name, got)
		}
	}
	for n, writes := range absent {
		if writes > 2*len(s.objects)/8 {
			t.Errorf("a route of %s is absent for %d writes, of %d objects", nodeName(n), writes, len(s.objects))
		}
	}
	if len(absent) != len(s.world.Nodes) {
		t.Errorf("the edit reaches %d nodes", len(absent))
	}
}

// While the webhook does not answer, nothing is deleted that could not be created anew. If it ceases to answer in
// between, other buckets keep what they have.
func TestSessionEditWaitsForTheWebhook(t *testing.T) {
	s, present, edit := editedSession()
	s.settle(t)
	edit()
	missing := func() (nodes int) {
		for n := range s.world.Nodes {
			if !present(n) {
				nodes++
			}
		}
		return nodes
	}
	away := true
	s.away = func(string) bool { return away }
	for range 3 {
		if s.round(); len(s.deleted) > 0 {
			t.Fatalf("deleted %v while no object can be created", s.deleted)
		}
	}
	away = false
	s.wrote = func() { away = len(s.deleted) > 0 }
	if s.round(); missing() == 0 || missing() > 100 {
		t.Errorf("routes of %d nodes are absent", missing())
	}
	s.wrote, away = func() {}, false
	if s.settle(t); missing() > 0 {
		t.Errorf("routes of %d nodes are absent in the end", missing())
	}
}
