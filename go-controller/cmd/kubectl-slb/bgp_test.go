// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The session of a node that drains is not shown with the error of an outage that ended before.
func TestErrorOfAnEarlierOutage(t *testing.T) {
	const refused = "connection refused"
	const lacks = "IPv6 unicast was not negotiated with the peer"
	ended := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state  v1alpha1.BGPSessionState
		failed time.Time
		err    string
		want   string
	}{
		"established since":         {v1alpha1.BGPEstablished, ended.Add(-time.Minute), refused, ""},
		"lacks a family":            {v1alpha1.BGPEstablished, ended, lacks, lacks},
		"ended without an error":    {v1alpha1.BGPIdle, ended.Add(-time.Minute), refused, ""},
		"ended with the error":      {v1alpha1.BGPIdle, ended.Add(-time.Second), refused, refused},
		"dials again and again":     {v1alpha1.BGPActive, ended.Add(-time.Minute), refused, refused},
		"failed after it had ended": {v1alpha1.BGPIdle, ended.Add(time.Minute), refused, refused},
	} {
		s := nodeSession{Node: "n1", BGPSession: v1alpha1.BGPSession{Peer: "tor", State: c.state, LastError: c.err,
			LastErrorTime: new(metav1.NewTime(c.failed)), Since: new(metav1.NewTime(ended))}}
		if c.err == lacks {
			s.LastErrorReason = v1alpha1.BGPErrorNotNegotiated
		}
		if got := s.problem(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	edited := nodeSession{BGPSession: v1alpha1.BGPSession{State: v1alpha1.BGPEstablished, Outdated: true}}
	if got := edited.problem(); !strings.Contains(got, "settings of before the last edit") {
		t.Errorf("a session that waits for its turn: %q", got)
	}
	faulty := nodeSession{Fault: "no carrier", BGPSession: v1alpha1.BGPSession{State: v1alpha1.BGPActive,
		LastError: "i/o timeout: check the address"}}
	if got := faulty.problem(); got != "no carrier" {
		t.Errorf("a session whose node reports a fault: %q", got)
	}
	faulty.State = v1alpha1.BGPEstablished
	if got := faulty.problem(); got != "" {
		t.Errorf("an established session whose node reports a fault: %q", got)
	}
	s := nodeSession{BGPSession: v1alpha1.BGPSession{State: v1alpha1.BGPEstablished, BFDError: "TTL 254"}}
	if got := s.problem(); got != "BFD: TTL 254" {
		t.Errorf("a session without BFD: %q", got)
	}
}

// What is wrong with sessions is below the table, once for all nodes that have the same problem.
func TestProblemsOfSessions(t *testing.T) {
	down := v1alpha1.BGPSession{Peer: "tor", PeerAddress: "192.0.2.1", State: v1alpha1.BGPActive, LastError: "refused"}
	up := v1alpha1.BGPSession{Peer: "tor", PeerAddress: "192.0.2.1", State: v1alpha1.BGPEstablished}
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	old := metav1.NewTime(now.Add(-47 * time.Minute))
	was := up
	was.BFD = v1alpha1.BFDUp // not in the table: that was true when the node reported last
	r := bgpReport{Routes: []explain.Route{}, Sessions: []nodeSession{{Node: "n1", BGPSession: down},
		{Node: "n2", BGPSession: up}, {Node: "n3", BGPSession: down},
		{Node: "n4", BGPSession: was, Unknown: "the node does not report", Reported: &old},
		{Node: "n5", BGPSession: up, Draining: true}, {Node: "n6", BGPSession: up, Stopped: true}}}
	const want = `NODE  PEER  ADDRESS    STATE                     SINCE  BFD  IPv4  IPv6  REPORTED
n1    tor   192.0.2.1  Active                    -      -    0     0     -
n2    tor   192.0.2.1  Established               -      -    0     0     -
n3    tor   192.0.2.1  Active                    -      -    0     0     -
n4    tor   192.0.2.1  unknown, was Established  -      -    0     0     47m
n5    tor   192.0.2.1  Established, draining     -      -    0     0     -
n6    tor   192.0.2.1  stopped, was Established  -      -    0     0     -

  n1,n3 with tor: refused
  n4 with tor: the node does not report
  n6 with tor: the BGP daemon was stopped: a router with graceful restart keeps its routes for up to 2 minutes

No BGPAdvertisement selects an address of a Service: kubectl slb status shows their conditions.
`
	var out bytes.Buffer
	if r.print(&out, now, false, 0); out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	r.ineffective = []string{"BGPAdvertisement routed: NoNodes: spec.nodeSelectors: no node matches"}
	const none = "No BGPAdvertisement with an effect selects an address of a Service: kubectl slb status shows " +
		"what to do.\n  BGPAdvertisement routed: NoNodes: spec.nodeSelectors: no node matches\n"
	if r.print(&out, now, false, 0); !strings.HasSuffix(out.String(), none) {
		t.Errorf("printed\n%s\nwant at its end\n%s", out.String(), none)
	}
	out.Reset() // A router that has sent no AS number has none.
	if r.print(&out, now, true, 0); !strings.Contains(out.String(), "REPORTED  ASN  LOCAL ADDRESS  ROUTER ID\n") ||
		!strings.Contains(out.String(), "-         -    -              -\n") {
		t.Errorf("printed\n%s", out.String())
	}
	for want, r := range map[string]bgpReport{
		"There is no BGPPeer":                                   {daemons: 3},
		"No node reports a BGP session, as with a flavour":      {peers: 1},
		"No node reports a BGP session, although BGP daemons r": {peers: 1, daemons: 3},
		"No node reports a BGP session. kubectl slb status shows what to do.\n  BGPPeer tor: SecretNotFound: ": {peers: 1,
			daemons: 3, invalid: []string{"BGPPeer tor: SecretNotFound: spec.passwordSecret: no Secret"}},
	} {
		out.Reset()
		if r.print(&out, time.Now(), false, 0); !strings.HasPrefix(out.String(), want) {
			t.Errorf("%d peers, %d daemons: printed %q, want %q", r.peers, r.daemons, out.String(), want)
		}
	}
}

// A BGPPeer without its Secret has no session, and which finding it has is known from its condition.
func TestInvalidPeers(t *testing.T) {
	peer := &v1alpha1.BGPPeer{}
	peer.Name, peer.Spec.PeerAddress, peer.Spec.MyASN, peer.Spec.PeerASN = "tor", "192.0.2.1", 64512, 64513
	peer.Spec.PasswordSecret = &v1alpha1.PasswordReference{Name: "tor"}
	peer.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonSecretNotFound, Message: "no Secret tor"}}
	got := invalidPeers(&objects.Objects{Peers: []*v1alpha1.BGPPeer{peer}}, time.Now())
	if len(got) != 1 || !strings.HasPrefix(got[0], "BGPPeer tor: SecretNotFound: ") {
		t.Errorf("%q", got)
	}
}

// The list of routes is bounded, and begins with those that lack a session. Wide output and JSON have all.
func TestRoutesAreBounded(t *testing.T) {
	r := bgpReport{}
	for i := range maxRoutes + 7 {
		r.Routes = append(r.Routes, explain.Route{Service: fmt.Sprintf("shop/%02d", i), Nodes: []string{"n1"}})
	}
	r.Routes[maxRoutes+5].Idle = []string{"n2"}
	var out bytes.Buffer
	r.printRoutes(&out, false)
	lines := strings.Split(out.String(), "\n")
	if len(lines) != maxRoutes+3 || !strings.Contains(lines[1], "shop/55") || !strings.Contains(lines[2], "shop/00") ||
		lines[maxRoutes+1] != "... and 7 more (-o wide lists all)" {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
	out.Reset()
	r.Routes[0].NextHops = []string{"192.0.2.11"}
	if r.printRoutes(&out, true); strings.Count(out.String(), "\n") != len(r.Routes)+1 ||
		!strings.Contains(out.String(), "NEXT HOP\n") || strings.Count(out.String(), "192.0.2.11\n") != 1 {
		t.Errorf("of all routes:\n%s", out.String())
	}
	out.Reset()
	var all bgpReport
	if _, err := (&output{format: formatJSON}).printAs(&out, r); err != nil || json.Unmarshal(out.Bytes(), &all) != nil ||
		!slices.EqualFunc(all.Routes, r.Routes, func(a, b explain.Route) bool { return a.Service == b.Service }) {
		t.Errorf("JSON has not all routes, or others: %v\n%s", err, out.String())
	}
}

// The last report of a node that no other gateway reaches is not taken for its state.
func TestSessionsOfAnUnansweredNode(t *testing.T) {
	var cluster objects.Objects
	manifests := `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: lan}
spec: {physicalNetwork: provider, subnets: [{cidr: 10.50.0.0/24}]}
status: {shards: [{index: 0, gateways: [n1, n2, n3], active: n1}]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPNodeStatus
metadata: {name: n2}
status: {sessions: [{peer: tor, peerAddress: 192.0.2.1, state: Established}]}
`
	for i, report := range []string{`{"down":["c2"]}`, `{}`, `{"down":["c2"]}`} {
		manifests += fmt.Sprintf(`
---
apiVersion: v1
kind: Node
metadata: {name: n%[1]d, annotations: {k8s.ovn.org/node-chassis-id: c%[1]d}}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: n%[1]d, annotations: {slb.k8s.ovn.org/faults: '{}', slb.k8s.ovn.org/tunnels: '%[2]s'}}
spec: {leaseDurationSeconds: 40, renewTime: "2026-01-01T00:00:00.000000Z"}
`, i+1, report)
	}
	if _, err := cluster.Set([]byte(manifests)); err != nil {
		t.Fatal(err)
	}
	list := sessions(&cluster, time.Date(2026, 1, 1, 0, 0, 25, 0, time.UTC))
	if len(list) != 1 || !strings.Contains(list[0].Unknown, "may be dead; its last report is 25s old") {
		t.Errorf("sessions %+v", list)
	}
}

// What a node reported that has expired, or whose BGP daemon does not run, is shown as the last report.
func TestSessionsOfDeadDaemonsAreUnknown(t *testing.T) {
	var cluster objects.Objects
	manifests := ""
	for _, node := range []string{"n1", "n2", "n3"} {
		manifests += fmt.Sprintf(`---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPNodeStatus
metadata: {name: %s}
status: {sessions: [{peer: tor, peerAddress: 192.0.2.1, state: Established}]}
`, node)
	}
	manifests += `---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: n1}
spec: {leaseDurationSeconds: 900, renewTime: "2026-01-01T00:00:00.000000Z"}
---
apiVersion: v1
kind: Pod
metadata: {name: node-x2x8z, namespace: ovn-kubernetes, labels: {app.kubernetes.io/name: ovnkube-slb-node}}
spec: {nodeName: n2, containers: [{name: node}]}
status:
  containerStatuses:
  - {name: node, image: slb, imageID: slb, restartCount: 3, ready: false, state: {waiting: {reason: CrashLoopBackOff}}}
`
	if _, err := cluster.Set([]byte(manifests)); err != nil {
		t.Fatal(err)
	}
	list := sessions(&cluster, time.Date(2026, 1, 1, 0, 15, 1, 0, time.UTC))
	for i, s := range list {
		want := []string{"the Lease of the node's daemon has expired, and with it the node's last report, of " +
			"2026-01-01T00:00:00Z",
			"container node of Pod ovn-kubernetes/node-x2x8z on node n2 is not ready (CrashLoopBackOff)", ""}[i]
		if s.Unknown != want {
			t.Errorf("node %s: unknown because %q, want %q", s.Node, s.Unknown, want)
		}
	}
	r := bgpReport{Sessions: list}
	route := explain.Route{Nodes: []string{"n1", "n2", "n3", "n4"}, Peers: []string{"tor"}}
	const want = "n1 (unknown), n2 (unknown), n3, n4"
	if got := strings.Join(r.advertisers(&route), ", "); got != want {
		t.Errorf("%s advertise the route, want %s", got, want)
	}
}

func TestOutdatedSessionsNameCommandAgainstEdit(t *testing.T) {
	var cluster objects.Objects
	manifests := golden.Peer("tor", "172.18.0.1") + `---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPNodeStatus
metadata: {name: n1}
status: {sessions: [{peer: tor, state: Active, lastError: "bad peer as", lastErrorReason: WrongASN}]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPNodeStatus
metadata: {name: n2}
status: {sessions: [{peer: tor, state: Established, outdated: true}]}
`
	if _, err := cluster.Set([]byte(manifests)); err != nil {
		t.Fatal(err)
	}
	list := sessions(&cluster, time.Date(2026, 1, 1, 0, 0, 25, 0, time.UTC))
	const want = "node n1 gets none with the new settings: correct or undo the edit, within 2 minutes of when it closed " +
		"its session, and no other node closes one: kubectl edit bgppeers.slb.k8s.ovn.org tor   # spec.myASN, spec.peerASN"
	if len(list) != 2 || list[0].Undo != "" || list[1].Undo != want || !strings.HasSuffix(list[1].problem(), want) {
		t.Errorf("sessions %+v", list)
	}
}
