// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Each step has the expected wakeup and the expected peer after it.
func TestPeersFollowReferencedObjects(t *testing.T) {
	f, wakes := counted()
	peer := func(generation int64) *v1alpha1.BGPPeer {
		return &v1alpha1.BGPPeer{
			ObjectMeta: metav1.ObjectMeta{Name: "tor", UID: "1", Generation: generation},
			Spec: v1alpha1.BGPPeerSpec{MyASN: 64512, PeerASN: 64513, PeerAddress: "10.0.0.1",
				PasswordSecret: &v1alpha1.PasswordReference{Name: "tor"}, BFDProfile: "fast"},
		}
	}
	secret := func(password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tor"}, Type: corev1.SecretTypeBasicAuth,
			Data: map[string][]byte{corev1.BasicAuthPasswordKey: []byte(password)}}
	}
	profile := &v1alpha1.BFDProfile{ObjectMeta: metav1.ObjectMeta{Name: "fast", Generation: 1}}
	reported := peer(1)
	reported.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady}}
	setPeer, setProfile := storeHandler(f, f.bgp.peers), storeHandler(f, f.bgp.profiles)
	for _, step := range []struct {
		what     string
		happens  func()
		news     bool
		password string
		bfd      bool
	}{
		{"a peer comes", func() { setPeer(nil, peer(1)) }, true, "", false},
		{"its status is written", func() { setPeer(peer(1), reported) }, false, "", false},
		{"its Secret comes", func() { f.setSecret(nil, secret("a")) }, true, "a", false},
		{"only a label of the Secret changes", func() { f.setSecret(secret("a"), secret("a")) }, false, "a", false},
		{"the password is another one", func() { f.setSecret(secret("a"), secret("b")) }, true, "b", false},
		{"its profile comes", func() { setProfile(nil, profile) }, true, "b", true},
		{"its profile goes", func() { setProfile(profile, nil) }, true, "b", false},
		{"its Secret goes", func() { f.setSecret(secret("b"), nil) }, true, "", false},
		{"its spec changes", func() { setPeer(reported, peer(2)) }, true, "", false},
	} {
		before := int(wakes.Load())
		step.happens()
		if events := int(wakes.Load()) > before; events != step.news {
			t.Errorf("%s: news is %v, want %v", step.what, events, step.news)
		}
		p := snapshot(f).Peers[0]
		if p.Password != step.password || (p.BFD != nil) != step.bfd {
			t.Errorf("%s: password %q, BFD %v; want %q, %v", step.what, p.Password, p.BFD, step.password, step.bfd)
		}
	}
	setPeer(peer(2), nil)
	if n := len(snapshot(f).Peers); n != 0 {
		t.Errorf("%d peers are left", n)
	}
}

func TestNodeStatusReportsSessions(t *testing.T) {
	f, wakes := counted()
	status := func(state v1alpha1.BGPSessionState, prefixes int64) *v1alpha1.BGPNodeStatus {
		return &v1alpha1.BGPNodeStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1alpha1.BGPNodeStatusStatus{
			Sessions: []v1alpha1.BGPSession{{Peer: "tor", State: state, AdvertisedIPv4: prefixes}}}}
	}
	f.setStatus(nil, status(v1alpha1.BGPEstablished, 0))
	if s := snapshot(f).Sessions["n1"]["tor"]; !s.Carries(world.IPv4) || !s.Carries(world.IPv6) ||
		int(wakes.Load()) != 1 { // An older daemon does not report families.
		t.Errorf("the session is %+v after %d wakes", s, int(wakes.Load()))
	}
	f.setStatus(status(v1alpha1.BGPEstablished, 0), status(v1alpha1.BGPEstablished, 9))
	if int(wakes.Load()) != 1 {
		t.Error("a counter is news")
	}
	last := status(v1alpha1.BGPEstablished, 9)
	for i, c := range []struct {
		families []string
		v4, v6   bool
	}{{[]string{"IPv4"}, true, false}, {[]string{}, false, false}, {[]string{"IPv4", "IPv6"}, true, true}} {
		next := status(v1alpha1.BGPEstablished, 9)
		next.Status.Sessions[0].Families = c.families
		f.setStatus(last, next)
		last = next
		if s := snapshot(f).Sessions["n1"]["tor"]; s.Carries(world.IPv4) != c.v4 || s.Carries(world.IPv6) != c.v6 ||
			int(wakes.Load()) != 2+i {
			t.Errorf("with families %v, the session is %+v after %d wakes", c.families, s, int(wakes.Load()))
		}
	}
	f.setStatus(last, status(v1alpha1.BGPActive, 9))
	if s := snapshot(f).Sessions["n1"]["tor"]; s.Established || s.Problem != "the session is Active" ||
		int(wakes.Load()) != 5 {
		t.Errorf("the session is %+v after %d wakes", s, int(wakes.Load()))
	}
	f.setStatus(status(v1alpha1.BGPActive, 9), nil)
	if n := len(snapshot(f).Sessions); n != 0 || int(wakes.Load()) != 6 {
		t.Errorf("%d nodes report after the last went, %d wakes", n, int(wakes.Load()))
	}
}

// Routers keep the routes of a daemon that was stopped, unless another one starts, until graceful restart ends.
func TestSessionsOfAStoppedDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := &v1alpha1.BGPNodeStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1alpha1.BGPNodeStatusStatus{
			Sessions: []v1alpha1.BGPSession{{Peer: "tor", State: v1alpha1.BGPEstablished}}}}
		stopped := func() *v1alpha1.BGPNodeStatus {
			s := running.DeepCopy()
			s.Status.StopTime = &metav1.Time{Time: time.Now()}
			return s
		}
		f, wakes := counted()
		f.setStatus(nil, running)
		is := func(what string, established bool, woken int64) {
			t.Helper()
			synctest.Wait()
			if s := snapshot(f).Sessions["n1"]["tor"]; s.Established != established || s.Unknown ||
				established != (s.Problem == "") || wakes.Load() != woken {
				t.Errorf("%s: %+v after %d wakes, want Established %v after %d", what, s, wakes.Load(), established, woken)
			}
		}
		is("at first", true, 1)
		last := stopped()
		f.setStatus(running, last)
		is("stopped", true, 1)
		<-time.After(world.GracefulRestartTime - time.Second)
		f.setStatus(last, running)
		<-time.After(time.Hour)
		is("started again in time", true, 1)
		f.setStatus(running, stopped())
		<-time.After(world.GracefulRestartTime)
		is("not started again", false, 2)
	})
}

// A report is valid until the node's kubelet or daemon is silent. A daemon that works reports again when its report is
// marked as expired, and the new report is valid. A daemon that does not work must report first, also after a restart
// of the controller.
func TestReportsExpire(t *testing.T) {
	node := func(ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	status := func(ready metav1.ConditionStatus) *v1alpha1.BGPNodeStatus {
		return &v1alpha1.BGPNodeStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1alpha1.BGPNodeStatusStatus{
			Sessions:   []v1alpha1.BGPSession{{Peer: "tor", State: v1alpha1.BGPEstablished}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}}}
	}
	lease := func(age time.Duration) *coordinationv1.Lease {
		lasts, renewed := int32(60), metav1.NewMicroTime(time.Now().Add(-age))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &lasts, RenewTime: &renewed}}
	}
	up, lost := node(corev1.ConditionTrue), node(corev1.ConditionUnknown)
	established, marked := status(metav1.ConditionTrue), status(metav1.ConditionUnknown)
	synctest.Test(t, func(t *testing.T) {
		f, _ := counted()
		is := func(what string, unknown bool) {
			t.Helper()
			if s := snapshot(f).Sessions["n1"]["tor"]; s.Unknown != unknown || s.Established == unknown {
				t.Errorf("%s: %+v, want it unknown: %v", what, s, unknown)
			}
		}
		f.setNode(nil, up)
		f.setStatus(nil, established)
		is("at first", false)
		f.setNode(up, lost)
		is("its kubelet is silent", true)
		f.setStatus(established, marked)
		f.setNode(lost, up)
		is("its kubelet is back, its daemon has not reported", true)
		f.setStatus(marked, established)
		is("it has reported", false)
		f.setNode(up, lost)
		f.setStatus(established, marked)
		f.setStatus(marked, established)
		is("only its kubelet is silent", false)
		<-time.After(recoveryPeriod + time.Second)
		is("it has to answer again", true)
		f.setNode(lost, up)
		first := lease(0)
		f.setReport(nil, first)
		is("its daemon has a Lease", false)
		<-time.After(61 * time.Second)
		is("the Lease has run out", true)
		f.setReport(first, lease(0))
		is("the Lease is renewed", false)
		<-time.After(time.Hour)
	})
	synctest.Test(t, func(t *testing.T) {
		f, _ := counted()
		f.setNode(nil, up)
		f.setStatus(nil, established)
		f.setReport(nil, lease(time.Hour))
		synctest.Wait()
		if s := snapshot(f).Sessions["n1"]["tor"]; !s.Unknown {
			t.Errorf("after a restart of the controller: %+v, although the Lease has run out", s)
		}
	})
}
