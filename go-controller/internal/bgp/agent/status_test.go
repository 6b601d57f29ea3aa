// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// written is a status, the last object written and the current time.
type written struct {
	nodeStatus
	have *v1alpha1.BGPNodeStatus
	now  time.Time
}

func newWritten() *written {
	w := &written{have: &v1alpha1.BGPNodeStatus{}, now: time.Unix(1_700_000_000, 0)}
	w.unread = func() []string { return nil }
	w.sessions = []bgp.Session{{Peer: "tor", Neighbor: bgp.Neighbor{RouterID: netip.MustParseAddr("10.0.0.1")}}}
	return w
}

// sees passes states on and reports whether the status is written.
func (w *written) sees(after time.Duration, states ...speaker.State) bool {
	w.now = w.now.Add(after)
	w.states = func() []speaker.State { return states }
	next, changed := w.merge(w.have, w.now)
	if changed {
		w.have = next
	}
	return changed
}

func (w *written) ready() metav1.Condition { return w.have.Status.Conditions[0] }

func TestStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	w := newWritten()
	refused := func(phase speaker.Phase, at time.Time) speaker.State {
		return speaker.State{Peer: "tor", Addr: netip.MustParseAddr("10.0.0.9"), Phase: phase, Since: at,
			LastError: "connection refused", LastErrorTime: at}
	}
	if !w.sees(0, refused(speaker.Active, w.now)) || w.have.Status.RouterID != "10.0.0.1" || w.ready().
		Reason != v1alpha1.ReasonNoSession {
		t.Fatalf("a first report: %+v", w.have.Status)
	}
	if w.sees(time.Minute, refused(speaker.Idle, w.now)) || w.sees(time.Minute, refused(speaker.Connect, w.now)) {
		t.Error("a peer that continues to refuse is written again")
	}
	up := speaker.State{Peer: "tor", Addr: netip.MustParseAddr("10.0.0.9"), Local: netip.MustParseAddr("10.0.0.1"),
		PeerASN: 64513,
		Phase:   speaker.Established, Since: w.now.Add(300 * time.Millisecond), IPv4: 7, LastError: "connection refused",
		BFD: "Up"}
	if !w.sees(time.Second, up) || w.ready().Status != metav1.ConditionTrue {
		t.Fatalf("the session is there: %+v", w.have.Status)
	}
	if s := w.have.Status.Sessions[0]; s.AdvertisedIPv4 != 7 || s.Families == nil || len(s.Families) > 0 ||
		s.LocalAddress != "10.0.0.1" || s.BFD != v1alpha1.BFDUp ||
		s.Since.Nanosecond() != 0 {
		t.Errorf("the session is %+v", s)
	}
	if w.sees(time.Second, up) {
		t.Error("the same is written again")
	}
	up.IPv4 = 8
	if w.sees(time.Second, up) {
		t.Error("a counter is written at once")
	}
	if !w.sees(countEvery, up) || w.have.Status.Sessions[0].AdvertisedIPv4 != 8 {
		t.Error("a counter is never written")
	}
	up.Families.IPv4 = true
	if !w.sees(time.Second, up) || !slices.Equal(w.have.Status.Sessions[0].Families, []string{"IPv4"}) {
		t.Errorf("the families are not written: %+v", w.have.Status.Sessions[0])
	}
	up.BFD = "Down"
	if !w.sees(0, up) {
		t.Error("BFD's state is not written")
	}
	if !w.sees(0, refused(speaker.Idle, w.now)) || w.ready().Status != metav1.ConditionFalse {
		t.Error("the loss of the session is not written")
	}
}

// Only what each attempt to connect changes is kept: state, since, peerASN and lastErrorTime.
func TestStatusOfAFailingSessionHasTheStateOfBFD(t *testing.T) {
	w := newWritten()
	failing := func(phase speaker.Phase, bfd string) speaker.State {
		s := speaker.State{Peer: "tor", Addr: netip.MustParseAddr("10.0.0.9"), Phase: phase, Since: w.now,
			LastError: "BFD is down", LastErrorTime: w.now, BFD: bfd}
		if phase == speaker.OpenConfirm {
			s.PeerASN = 64513
		}
		return s
	}
	w.sees(0, failing(speaker.Active, "Up"))
	since := w.have.Status.Sessions[0].Since
	if !w.sees(time.Minute, failing(speaker.Connect, "Down")) {
		t.Error("the state of BFD is not written")
	}
	s := w.have.Status.Sessions[0]
	if s.BFD != v1alpha1.BFDDown || s.State != v1alpha1.BGPActive || !s.Since.Equal(since) ||
		!s.LastErrorTime.Equal(since) {
		t.Errorf("the session is %+v, want state Active since %s and BFD Down", s, since)
	}
	if w.sees(time.Minute, failing(speaker.OpenConfirm, "Down")) {
		t.Error("an attempt that fails in the same way is written")
	}
	without := failing(speaker.Connect, "Down")
	without.BFDProblem = "another agent has the port"
	if !w.sees(time.Minute, without) || w.have.Status.Sessions[0].BFDError != without.BFDProblem {
		t.Error("what prevents BFD is not written")
	}
	if !w.sees(time.Minute, failing(speaker.Connect, "")) || w.have.Status.Sessions[0].BFD != "" {
		t.Error("BFD that was switched off is not written")
	}
}

func TestReady(t *testing.T) {
	tor, spine := speaker.State{Peer: "tor", Phase: speaker.Established},
		speaker.State{Peer: "spine", Phase: speaker.Active}
	for name, test := range map[string]struct {
		leaving bool
		states  []speaker.State
		want    string
	}{
		"no peers":  {want: v1alpha1.ReasonReady},
		"all":       {states: []speaker.State{tor}, want: v1alpha1.ReasonReady},
		"some lack": {states: []speaker.State{tor, spine}, want: v1alpha1.ReasonSessionsDown},
		"all lack":  {states: []speaker.State{spine}, want: v1alpha1.ReasonNoSession},
		"draining":  {leaving: true, states: []speaker.State{tor}, want: v1alpha1.ReasonDraining},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWritten()
			w.sessions[0].Leaving = test.leaving
			if w.sees(0, test.states...); w.ready().Reason != test.want {
				t.Errorf("Ready is %+v, want %s", w.ready(), test.want)
			}
		})
	}
}

// The router ends each session soon. The first one and its end are written, and nothing after that.
func TestStatusOfADampedSessionDoesNotChange(t *testing.T) {
	w := newWritten()
	up := speaker.State{Peer: "tor", Addr: netip.MustParseAddr("10.0.0.9"), Local: netip.MustParseAddr("10.0.0.1"),
		PeerASN: 64513, Phase: speaker.Established, Since: w.now, IPv4: 7, Families: speaker.Families{IPv4: true}}
	w.sees(0, up)
	down := speaker.State{Peer: "tor", Addr: up.Addr, Phase: speaker.Active, Damped: true, LastError: "too many prefixes"}
	if !w.sees(time.Second, down) || w.ready().Reason != v1alpha1.ReasonNoSession {
		t.Fatalf("the end of the first session: %+v", w.have.Status)
	}
	up.Damped, up.LastError = true, down.LastError
	for range 5 {
		up.Since = w.now
		if w.sees(time.Minute, up) || w.sees(time.Minute, down) {
			t.Fatalf("another session is written: %+v", w.have.Status)
		}
	}
	up.Damped = false
	if !w.sees(time.Minute, up) || w.ready().Status != metav1.ConditionTrue ||
		w.have.Status.Sessions[0].AdvertisedIPv4 != 7 {
		t.Errorf("the session that lasts: %+v", w.have.Status)
	}
}

// A session that ends with the daemon is not Established any more, unless the router keeps its routes meanwhile. The
// next daemon reports its own sessions.
func TestStatusOfADaemonThatIsStopped(t *testing.T) {
	w := newWritten()
	w.sessions = append(w.sessions, bgp.Session{Peer: "spine", Neighbor: bgp.Neighbor{GracefulRestart: true}})
	up := func(peer string) speaker.State {
		return speaker.State{Peer: peer, Addr: netip.MustParseAddr("10.0.0.9"), Local: netip.MustParseAddr("10.0.0.1"),
			PeerASN: 64513, Phase: speaker.Established, Since: w.now, IPv4: 7, Families: speaker.Families{IPv4: true},
			BFD: "Up"}
	}
	w.sees(0, up("spine"), up("tor"))
	before := w.have.Status.Sessions
	w.stopping = true
	if !w.sees(time.Hour, up("spine"), up("tor")) || w.ready().Reason != v1alpha1.ReasonStopped ||
		!w.have.Status.StopTime.Equal(apiTime(w.now)) || w.have.Status.Summary != "spine Established, tor Idle" {
		t.Fatalf("the last report: %+v", w.have.Status)
	}
	ended := v1alpha1.BGPSession{Peer: "tor", PeerAddress: "10.0.0.9", State: v1alpha1.BGPIdle, Since: apiTime(w.now),
		LastError: "the BGP daemon was stopped", LastErrorTime: apiTime(w.now)}
	if got := w.have.Status.Sessions; !equality.Semantic.DeepEqual(got, []v1alpha1.BGPSession{before[0], ended}) {
		t.Errorf("the sessions of the last report are %+v", got)
	}
	if w.sees(time.Second, up("spine"), up("tor")) {
		t.Error("the last report is written twice")
	}
	w.stopping = false
	if !w.sees(time.Second, up("spine"), up("tor")) || w.have.Status.StopTime != nil ||
		w.ready().Status != metav1.ConditionTrue {
		t.Errorf("the report of the next daemon: %+v", w.have.Status)
	}
}

// storedStatus is an API server that counts the writes of one status.
type storedStatus struct {
	nodeStatuses
	mu     sync.Mutex
	object *v1alpha1.BGPNodeStatus
	writes int
}

func (s *storedStatus) UpdateStatus(_ context.Context, o *v1alpha1.BGPNodeStatus, _ metav1.UpdateOptions) (
	*v1alpha1.BGPNodeStatus, error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object, s.writes = o, s.writes+1
	return o, nil
}

func (s *storedStatus) read(string) (*v1alpha1.BGPNodeStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object, true
}

func (s *storedStatus) state() v1alpha1.BGPSessionState {
	o, _ := s.read("")
	return o.Status.Sessions[0].State
}

// A router whose BFD goes down and up again and again causes few writes. The loss of a session is written at once
// meanwhile, and so are its return and the end of the daemon.
func TestStatusIsWrittenSeldomWhileARouterChangesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		state := speaker.State{Peer: "tor", Addr: netip.MustParseAddr("10.0.0.9"), Phase: speaker.Established}
		store := &storedStatus{object: &v1alpha1.BGPNodeStatus{}}
		s := &nodeStatus{node: "n1", read: store.read, wakeups: make(chan struct{}, 1), stopped: make(chan struct{}, 1),
			unread: func() []string { return nil }}
		s.writer = kube.NewNodeStatusWriter(store, store.read, func(string, error) {}, s.recordWrite, isUrgent)
		s.states = func() []speaker.State {
			mu.Lock()
			defer mu.Unlock()
			return []speaker.State{state}
		}
		sees := func(change func()) {
			mu.Lock()
			change()
			mu.Unlock()
			s.wake()
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		const minutes, changes = 5, 1500
		flap := func() {
			for i := range changes {
				sees(func() { state.BFD = []string{"Down", "Up"}[i%2] })
				<-time.After(minutes * time.Minute / changes)
			}
		}
		flap()
		synctest.Wait()
		if most := 10 + minutes*6 + 1; store.writes > most {
			t.Errorf("%d writes in %d min, want %d at most", store.writes, minutes, most)
		}
		for _, phase := range []speaker.Phase{speaker.Active, speaker.Established} {
			sees(func() { state.Phase = phase })
			<-time.After(time.Second)
			synctest.Wait()
			if is := store.state(); is != v1alpha1.BGPSessionState(phase) {
				t.Errorf("the session is reported %s, want %s", is, phase)
			}
		}
		flap()
		s.stop(ctx)
		if o, _ := store.read(""); o.Status.StopTime == nil {
			t.Error("the end of the daemon is not reported")
		}
		cancel()
		running.Wait()
	})
}

// hung is an API server that does not answer.
type hung struct{ nodeStatuses }

func (hung) UpdateStatus(ctx context.Context, _ *v1alpha1.BGPNodeStatus, _ metav1.UpdateOptions) (
	*v1alpha1.BGPNodeStatus, error,
) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestLastReportDoesNotKeepTheDaemonFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := func(string) (*v1alpha1.BGPNodeStatus, bool) { return &v1alpha1.BGPNodeStatus{}, true }
		s := &nodeStatus{node: "n1", read: read, unread: func() []string { return nil },
			states:  func() []speaker.State { return nil },
			stopped: make(chan struct{}, 1),
			writer:  kube.NewObjectWriter("BGPNodeStatus", hung{}, read, func(string, error) {}, nil)}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		start := time.Now()
		s.stop(ctx)
		if took := time.Since(start); took != stopTimeout {
			t.Errorf("the last report took %s, want %s", took, stopTimeout)
		}
		cancel()
		running.Wait()
	})
}
