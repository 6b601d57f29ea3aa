// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// largeStates lists FRRNodeStates of 1.4 MB, each with more prefixes than are read, as an API server without watch
// lists does.
type largeStates struct {
	t     *testing.T
	count int
	text  string
}

func (l largeStates) List(_ context.Context, o metav1.ListOptions) (*frr.NodeStateList, error) {
	if o.Limit == 0 || o.Limit > statesPerPage || o.ResourceVersion != "" {
		l.t.Errorf("a list of %d objects at version %q, want at most %d of the newest", o.Limit, o.ResourceVersion,
			statesPerPage)
	}
	first := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &first); err != nil {
			return nil, err
		}
	}
	list := &frr.NodeStateList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := first; i < min(l.count, first+statesPerPage); i++ {
		list.Items = append(list.Items, frr.NodeState{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i),
			ResourceVersion: fmt.Sprint(i + 1)}, Status: frr.NodeStateStatus{RunningConfig: strings.Clone(l.text)}})
	}
	if next := first + statesPerPage; next < l.count {
		list.Continue = fmt.Sprint(next)
	}
	return list, nil
}

func (l largeStates) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, fmt.Errorf("sendInitialEvents is forbidden")
	}
	return watch.NewFake(), nil
}

// Huge FRRNodeStates are listed in small pages, and nothing of them is kept.
func TestHugeNodeStatesAreNotKept(t *testing.T) {
	const count = 2*statesPerPage + 1
	var text strings.Builder
	text.WriteString("router bgp 1\n neighbor 10.50.0.1 remote-as 1\n address-family ipv4 unicast\n")
	for i := range 19_000 {
		fmt.Fprintf(&text, " network 10.%d.%d.%d/32\n", i>>16, i>>8&255, i&255)
	}
	text.WriteString("exit\n")
	for i := range 19_000 {
		fmt.Fprintf(&text, "ip prefix-list 10.50.0.1-allowed-ipv4 permit 10.%d.%d.%d/32\n", i>>16, i>>8&255, i&255)
	}
	received := make(chan *frr.NodeState, count)
	list := smallPages[*frr.NodeStateList]{largeStates{t, count, text.String()}, statesPerPage}
	informer := newInformer(list, &frr.NodeState{}, frr.Trimmed, func(_, now *frr.NodeState) { received <- now })
	go informer.RunWithContext(t.Context())
	for range count {
		s := await.Receive(t, "each state is reported", received)
		if s.Unread == "" || s.Status.RunningConfig != "" || len(s.Running) > 0 {
			t.Errorf("%s: unread %q, %d bytes of text, %d neighbors", s.Name, s.Unread, len(s.Status.RunningConfig),
				len(s.Running))
		}
	}
}

// What is reported of a node that does not exist has no effect, nor while FRR does not run there. Sessions count for
// the node that they name now, and a node with too many is unknown.
func TestReportsOfFRR(t *testing.T) {
	f, _ := counted()
	f.frr = frrFacts{namespace: "frr", state: func() (string, string) { return "", "" },
		daemons: frr.Daemons{}, daemonsUnread: func() string { return "" },
		nodes: map[string]*world.FRRNode{}, sessions: map[string]frr.Sessions{}}
	peer := &world.Peer{Name: "tor", FRRK8s: true, Nodes: []string{"n1", "n2"}}
	session := func(name, node, vrf string) *frr.SessionState {
		return &frr.SessionState{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: frr.SessionStateStatus{Node: node,
			Peer: frrapi.SessionID(peer.NeighborID()), BGPStatus: "Established", VRF: vrf}}
	}
	for _, name := range []string{"n1", "n2"} {
		f.setNode(nil, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		f.setFRRPod(nil, frrPod("frr-"+name, name, true))
	}
	for _, name := range []string{"n1", "n2", "invented"} {
		f.setFRRNode(nil, &frr.NodeState{ObjectMeta: metav1.ObjectMeta{Name: name}, Running: frrapi.Running{}})
		f.setFRRSession(nil, session(name, name, ""))
	}
	check := func(what string, want map[string]bool) {
		t.Helper()
		w := snapshot(f)
		if n := len(w.FRR.Nodes); n != 2 {
			t.Errorf("%s: states of %d nodes, want 2", what, n)
		}
		for _, n := range w.Nodes {
			if got := w.FRR.Established(n, peer); got != want[n.Name] {
				t.Errorf("%s: established on %s: %v, want %v", what, n.Name, got, want[n.Name])
			}
		}
	}
	check("both", map[string]bool{"n1": true, "n2": true})
	f.frr.daemonsUnread = func() string { return "the Pods are not known" }
	check("Pods that are not known", nil)
	if w := snapshot(f); !w.FRR.Available() {
		t.Error("nothing is written while Pods are not known")
	}
	f.frr.daemonsUnread = func() string { return "" }
	f.setFRRPod(frrPod("frr-n1", "n1", true), frrPod("frr-n1", "n1", false))
	check("FRR does not run", map[string]bool{"n2": true})
	f.setFRRPod(frrPod("frr-n1", "n1", false), nil)
	check("no Pod", map[string]bool{"n2": true})
	f.setFRRPod(nil, frrPod("new", "n1", true))
	check("another Pod", map[string]bool{"n1": true, "n2": true})
	f.setFRRSession(session("n1", "n1", ""), session("n1", "n1", "red"))
	check("another VRF", map[string]bool{"n2": true})
	f.setFRRSession(session("n1", "n1", "red"), session("n1", "n2", ""))
	f.setFRRSession(session("n2", "n2", ""), nil)
	check("the session of another node", map[string]bool{"n2": true})
	for i := range frr.MaxSessions {
		f.setFRRSession(nil, session(fmt.Sprint(i), "n2", ""))
	}
	check("too many", nil)
	if w := snapshot(f); !strings.Contains(w.FRR.Nodes["n2"].Unread, "257 BGPSessionStates") {
		t.Errorf("unread: %q", w.FRR.Nodes["n2"].Unread)
	}
}

// frrPod returns a Pod of frr-k8s' DaemonSet.
func frrPod(name, node string, ready bool) *corev1.Pod {
	controller := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "frr", Name: name,
		OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "frr-k8s", Controller: &controller}}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "frr"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "frr", Ready: ready}}}}
}
