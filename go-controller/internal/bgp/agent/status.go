// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// countEvery is the shortest interval at which a status is written in which only counters differ. As often as that it
	// is checked whether they do, so they are up to two intervals late: Services that come and go cause few writes.
	countEvery = 15 * time.Second
	// createTimeout limits an attempt to create the object. createPause is the time between two attempts.
	createTimeout = 5 * time.Second
	createPause   = 5 * time.Second
	// stopTimeout limits the time for the last report, which may have to wait for a second since the one before. A Pod
	// has 30 s to end.
	stopTimeout = 3 * time.Second
)

// nodeStatuses creates and updates BGPNodeStatus objects.
type nodeStatuses interface {
	kube.StatusUpdater[*v1alpha1.BGPNodeStatus]
	Create(ctx context.Context, o *v1alpha1.BGPNodeStatus, options metav1.CreateOptions) (*v1alpha1.BGPNodeStatus, error)
}

// nodeStatus maintains the node's BGPNodeStatus.
type nodeStatus struct {
	node   string
	client nodeStatuses
	facts  *kube.Facts
	read   func(node string) (*v1alpha1.BGPNodeStatus, bool)
	writer *kube.ObjectWriter[*v1alpha1.BGPNodeStatus]
	states func() []speaker.State
	// unread returns the resources that the daemon decides from and can't read any more, sorted.
	unread  func() []string
	wakeups chan struct{}
	// reporting is the heartbeat of run.
	reporting loop.Heartbeat
	// stopped has a token when the last report is written.
	stopped chan struct{}

	mu       sync.Mutex
	sessions []bgp.Session
	// off is the reason why there must be no sessions, empty if there may be.
	off string
	// counted is the time when counters were written last.
	counted time.Time
	// stopping means that the daemon ends. stopTime is when it ends, as in the last report.
	stopping bool
	stopTime *metav1.Time
}

func newStatus(node string, client nodeStatuses, facts *kube.Facts, wrote kube.Wrote) *nodeStatus {
	s := &nodeStatus{node: node, client: client, facts: facts, read: facts.NodeStatus, wakeups: make(chan struct{}, 1),
		stopped: make(chan struct{}, 1)}
	s.unread = func() []string { return nil }
	s.writer = kube.NewNodeStatusWriter(client, facts.NodeStatus, wrote, s.recordWrite, isUrgent)
	return s
}

// wake triggers a check of the status.
func (s *nodeStatus) wake() {
	select {
	case s.wakeups <- struct{}{}:
	default:
	}
}

// set stores the computed sessions.
func (s *nodeStatus) set(sessions []bgp.Session, off string) {
	s.mu.Lock()
	s.sessions, s.off = sessions, off
	s.mu.Unlock()
	s.wake()
}

// run writes the status until the context ends.
func (s *nodeStatus) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.writer.Run(ctx) })
	counters := time.NewTicker(countEvery)
	defer counters.Stop()
	again := time.NewTimer(0)
	defer again.Stop()
	defer s.reporting.Stop()
	for {
		s.reporting.Beat() // at least each countEvery
		select {
		case <-ctx.Done():
			return
		case <-s.wakeups:
		case <-counters.C:
		case <-again.C:
		}
		if err := s.ensure(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to report BGP status, will retry", "retryIn", createPause)
			again.Reset(createPause)
			continue
		}
		s.writer.Set(map[string]status.Merge[*v1alpha1.BGPNodeStatus]{s.node: s.merge})
	}
}

// stop writes the last report. It returns when the report is written, or after stopTimeout: the daemon ends anyway. run
// must be running.
func (s *nodeStatus) stop(ctx context.Context) {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	if _, there := s.read(s.node); !there {
		return
	}
	s.writer.Set(map[string]status.Merge[*v1alpha1.BGPNodeStatus]{s.node: s.merge})
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	select {
	case <-s.stopped:
	case <-ctx.Done():
	case <-late.C:
		klog.InfoS("Failed to report that the BGP daemon ends", "node", s.node, "timeout", stopTimeout)
	}
}

// recordWrite notices that the last report is written.
func (s *nodeStatus) recordWrite(_, is *v1alpha1.BGPNodeStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopTime != nil && s.stopTime.Equal(is.Status.StopTime) {
		select {
		case s.stopped <- struct{}{}:
		default:
		}
	}
}

// ensure creates the object, owned by its Node. The object appears in the cache some time later and is written then.
func (s *nodeStatus) ensure(ctx context.Context) error {
	if _, there := s.read(s.node); there {
		return nil
	}
	node, known := s.facts.Node(s.node)
	if !known {
		return fmt.Errorf("create BGPNodeStatus %s: there is no Node of that name", s.node)
	}
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	_, err := s.client.Create(ctx, &v1alpha1.BGPNodeStatus{ObjectMeta: metav1.ObjectMeta{
		Name: s.node,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node",
			Name: node.Name, UID: node.UID}},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create BGPNodeStatus %s: %w", s.node, err)
	}
	return nil
}

// merge returns the current report, and false if the object already contains it.
func (s *nodeStatus) merge(have *v1alpha1.BGPNodeStatus, now time.Time) (*v1alpha1.BGPNodeStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return s.last(have, now)
	}
	next := have.DeepCopy()
	next.Status.StopTime = nil
	next.Status.RouterID, next.Status.Sessions = "", withStableStates(have.Status.Sessions, report(s.states()))
	next.Status.Summary = summary(next.Status.Sessions)
	leaving := false
	if len(s.sessions) > 0 {
		next.Status.RouterID, leaving = s.sessions[0].Neighbor.RouterID.String(), s.sessions[0].Leaving
	}
	ready := ready(next.Status.Sessions, leaving, s.off, s.unread())
	ready.LastTransitionTime = metav1.NewTime(now)
	changed := meta.SetStatusCondition(&next.Status.Conditions, ready)
	changed = changed || have.Status.StopTime != nil || have.Status.RouterID != next.Status.RouterID ||
		!equality.Semantic.DeepEqual(withoutCounters(have), withoutCounters(next))
	if !changed && (now.Sub(s.counted) < countEvery || equality.Semantic.DeepEqual(have.Status.Sessions,
		next.Status.Sessions)) {
		return nil, false
	}
	s.counted = now
	return next, true
}

// last returns the last report. The sessions end with the daemon. Those with graceful restart stay Established in it,
// because routers keep their routes until the next daemon is there (GracefulRestartTime).
func (s *nodeStatus) last(have *v1alpha1.BGPNodeStatus, now time.Time) (*v1alpha1.BGPNodeStatus, bool) {
	if s.stopTime == nil {
		s.stopTime = apiTime(now)
	}
	if s.stopTime.Equal(have.Status.StopTime) {
		return nil, false
	}
	const text = "the BGP daemon was stopped"
	next := have.DeepCopy()
	next.Status.StopTime = s.stopTime
	for i := range next.Status.Sessions {
		is := &next.Status.Sessions[i]
		at := slices.IndexFunc(s.sessions, func(o bgp.Session) bool { return o.Peer == is.Peer })
		if is.State == v1alpha1.BGPEstablished && at >= 0 && s.sessions[at].Neighbor.GracefulRestart {
			continue
		}
		*is = v1alpha1.BGPSession{Peer: is.Peer, PeerAddress: is.PeerAddress, State: v1alpha1.BGPIdle, Since: s.stopTime,
			LastError: text, LastErrorTime: s.stopTime}
	}
	next.Status.Summary = summary(next.Status.Sessions)
	meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady,
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStopped, LastTransitionTime: metav1.NewTime(now),
		Message: text + ": its sessions have ended. Routers with graceful restart keep its routes for up to " +
			world.Count(int(world.GracefulRestartTime/time.Minute), "minute")})
	return next, true
}

// isUrgent reports whether a report must not wait for its turn: a session was established or lost, Ready has another
// reason, for example a drain, or the daemon has started or ends. A router can't cause such reports at will, because
// sessions that it ends soon are damped. It can change BFD and errors as often as it likes.
func isUrgent(before, after *v1alpha1.BGPNodeStatus) bool {
	was, is := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady),
		meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	return was == nil || is == nil || was.Status != is.Status || was.Reason != is.Reason ||
		!before.Status.StopTime.Equal(after.Status.StopTime) ||
		!slices.Equal(established(before.Status.Sessions), established(after.Status.Sessions))
}

// established returns the peers whose sessions are Established, sorted.
func established(sessions []v1alpha1.BGPSession) []string {
	var peers []string
	for _, s := range sessions {
		if s.State == v1alpha1.BGPEstablished {
			peers = append(peers, s.Peer)
		}
	}
	slices.Sort(peers)
	return peers
}

// summary returns the sessions in one line, for kubectl get.
func summary(sessions []v1alpha1.BGPSession) string {
	var list []string
	for _, s := range sessions {
		list = append(list, fmt.Sprintf("%s %s", s.Peer, s.State))
	}
	return strings.Join(list, ", ")
}

// withStableStates keeps the reported state of sessions that fail in the same way as before: a peer that does not
// answer is dialed indefinitely, and each attempt goes through the same states. peerASN is known in some of them only.
// The state of BFD does not depend on attempts.
func withStableStates(have, now []v1alpha1.BGPSession) []v1alpha1.BGPSession {
	for i := range now {
		s := &now[i]
		at := slices.IndexFunc(have, func(o v1alpha1.BGPSession) bool { return o.Peer == s.Peer })
		if at < 0 {
			continue
		}
		was := &have[at]
		if s.State == v1alpha1.BGPEstablished || was.State == v1alpha1.BGPEstablished || s.LastError != was.LastError ||
			s.PeerAddress != was.PeerAddress {
			continue
		}
		s.State, s.Since, s.PeerASN, s.LastErrorTime = was.State, was.Since, was.PeerASN, was.LastErrorTime
	}
	return now
}

// withoutCounters returns the sessions without their counters.
func withoutCounters(o *v1alpha1.BGPNodeStatus) []v1alpha1.BGPSession {
	list := slices.Clone(o.Status.Sessions)
	for i := range list {
		list[i].AdvertisedIPv4, list[i].AdvertisedIPv6 = 0, 0
	}
	return list
}

// report converts the states of sessions to the API type.
func report(states []speaker.State) []v1alpha1.BGPSession {
	var list []v1alpha1.BGPSession
	for _, s := range states {
		if s.Damped && s.Phase == speaker.Established { // The report is the same whether there is a session or not.
			s.Phase, s.IPv4, s.IPv6, s.Local = speaker.Active, 0, 0, netip.Addr{}
		}
		out := v1alpha1.BGPSession{
			Peer: s.Peer, PeerASN: int64(s.PeerASN), State: v1alpha1.BGPSessionState(s.Phase), Since: apiTime(s.Since),
			Outdated: s.Outdated && !s.Damped, AdvertisedIPv4: int64(s.IPv4), AdvertisedIPv6: int64(s.IPv6),
			LastError: s.LastError, LastErrorReason: s.LastErrorReason, LastErrorTime: apiTime(s.LastErrorTime),
		}
		if s.Addr.IsValid() {
			out.PeerAddress = s.Addr.String()
		}
		if s.Phase == speaker.Established {
			out.Families = families(s.Families)
		}
		if s.Local.IsValid() {
			out.LocalAddress = s.Local.String()
		}
		switch bfd := v1alpha1.BFDSessionState(s.BFD); bfd {
		case v1alpha1.BFDAdminDown, v1alpha1.BFDDown, v1alpha1.BFDInit, v1alpha1.BFDUp:
			out.BFD, out.BFDError = bfd, s.BFDProblem
		}
		list = append(list, out)
	}
	return list
}

// families returns the names of families; an empty list, not nil, for none.
func families(f speaker.Families) []string {
	list := []string{}
	if f.IPv4 {
		list = append(list, world.IPv4.String())
	}
	if f.IPv6 {
		list = append(list, world.IPv6.String())
	}
	return list
}

// apiTime returns a time with the API's precision; nil for the zero time.
func apiTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t.Truncate(time.Second))
	return &out
}

// ready computes the condition Ready.
func ready(sessions []v1alpha1.BGPSession, leaving bool, off string, unread []string) metav1.Condition {
	var down []string
	for _, s := range sessions {
		if s.State != v1alpha1.BGPEstablished {
			down = append(down, s.Peer)
		}
	}
	not := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason,
			Message: message}
	}
	switch {
	case off != "":
		return not(v1alpha1.ReasonDisabledByMode, off+": routes are withdrawn, then sessions closed")
	case leaving:
		return not(v1alpha1.ReasonDraining, "the node is draining: its routes are withdrawn, then its sessions closed")
	case len(unread) > 0: // What a session carries rests on what was read before.
		return not(v1alpha1.ReasonNotRead, "the BGP daemon can't read "+strings.Join(unread, ", ")+" any more (its log has "+
			"the error), so what it advertises may be out of date")
	case len(down) > 0 && len(down) == len(sessions):
		return not(v1alpha1.ReasonNoSession, "no session is established: "+strings.Join(down, ", "))
	case len(down) > 0:
		return not(v1alpha1.ReasonSessionsDown, "not established: "+strings.Join(down, ", "))
	}
	message := "all sessions are established"
	if len(sessions) == 0 {
		message = "no BGPPeer chooses this node"
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: message}
}
