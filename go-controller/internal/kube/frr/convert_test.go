// SPDX-License-Identifier: Apache-2.0

package frr_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// running returns the text of a configuration that advertises n prefixes to a neighbor.
func running(n int) string {
	var b strings.Builder
	b.WriteString("router bgp 64512\n no bgp network import-check\n address-family ipv6 unicast\n" +
		"  neighbor fd00:50::1 activate\n  neighbor fd00:50::1 route-map fd00:50::1-out out\n")
	for i := range n {
		fmt.Fprintf(&b, "  network 2001:db8::%x/128\n", i)
	}
	b.WriteString("exit\nroute-map fd00:50::1-out permit 1\n" +
		" match ipv6 address prefix-list fd00:50::1-allowed-ipv6\nexit\n")
	for i := range n {
		fmt.Fprintf(&b, "ipv6 prefix-list fd00:50::1-allowed-ipv6 seq %d permit 2001:db8::%x/128\n", i+1, i)
	}
	return b.String()
}

// Of an FRRNodeState of any size, little is kept, and a part of what it reports never counts as the whole.
func TestTrimmedStateIsBounded(t *testing.T) {
	const most = 300 << 10 // bytes for MaxAdvertised prefixes
	garbage := strings.Repeat("!", frrapi.MaxText)
	for name, c := range map[string]struct {
		text   string
		unread bool
		routes int
	}{
		"as many prefixes as are read": {running(frrapi.MaxAdvertised), false, frrapi.MaxAdvertised},
		"one more":                     {running(frrapi.MaxAdvertised + 1), true, 0},
		"a longer text":                {running(1) + garbage, true, 0},
		"a long text with one prefix":  {(running(1) + garbage)[:frrapi.MaxText], false, 1},
		"a neighbor with a long name": {strings.ReplaceAll(running(1), "fd00:50::1-allowed", garbage[:1<<18]+"-allowed"),
			false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var states []*frr.NodeState
			var before, after runtime.MemStats
			const count = 20
			for range count {
				states = append(states, &frr.NodeState{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "7",
					Annotations: map[string]string{"a": strings.Clone(garbage[:1<<18])}}, Status: frr.NodeStateStatus{
					RunningConfig: strings.Clone(c.text), LastReloadResult: strings.Clone(garbage)}})
			}
			runtime.GC()
			runtime.ReadMemStats(&before)
			for _, s := range states {
				frr.Trimmed(frr.Trimmed(s))
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			freed := int(before.HeapAlloc) - int(after.HeapAlloc)
			if kept := (len(c.text)+len(garbage)+1<<18)*count - freed; kept > most*count {
				t.Errorf("%d KB of each are kept, want at most %d", kept/count>>10, most>>10)
			}
			is := frr.ReadNode(states[0])
			if (is.Unread != "") != c.unread || len(is.Running["fd00:50::1"]) != c.routes {
				t.Errorf("%d prefixes, unread: %q", len(is.Running["fd00:50::1"]), is.Unread)
			}
			if states[0].Name != "n1" || states[0].ResourceVersion != "7" || len(is.Problem) > 400 || len(is.Unread) > 400 {
				t.Errorf("%s %s: %s", states[0].Name, states[0].ResourceVersion, is.Problem)
			}
		})
	}
}

// With more sessions than are read, none of a node counts, nor what it runs. Texts of sessions are bounded.
func TestSessionsOfANodeAreBounded(t *testing.T) {
	long := strings.Repeat("Established", 1000)
	s := frr.TrimmedSession(&frr.SessionState{ObjectMeta: metav1.ObjectMeta{Name: "s", ManagedFields: []metav1.
		ManagedFieldsEntry{{}}, Annotations: map[string]string{"a": long}}, Status: frr.SessionStateStatus{BGPStatus: long,
		BFDStatus: long, Node: long, Peer: long, VRF: long}})
	if text := fmt.Sprint(*s); len(text) > 2000 {
		t.Errorf("%d bytes of a session are kept", len(text))
	}
	sessions := frr.Sessions{}
	for i := range frr.MaxSessions + 1 {
		out := &world.FRR{Nodes: map[string]*world.FRRNode{}, Sessions: map[string]map[string]string{}}
		sessions[fmt.Sprint(i)] = frr.SessionStateStatus{BGPStatus: "Established", Peer: fmt.Sprint(i)}
		frr.AddReports(out, "n1", &world.FRRNode{}, sessions)
		unread, states := out.Nodes["n1"].Unread, out.Sessions["n1"]
		if i < frr.MaxSessions && (unread != "" || len(states) != i+1) || i == frr.MaxSessions && unread == "" ||
			unread != "" && len(states) > 0 {
			t.Errorf("%d sessions: %d read, unread: %q", i+1, len(states), unread)
		}
	}
}
