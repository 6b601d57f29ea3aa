// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Events reports transitions of Services as Events. A move of a shard to another gateway is reported once, for all its
// Services. Run writes the Events. The zero value is ready to use.
type Events struct {
	queue    eventQueue
	failures failures
	// unwritten counts the Events that were taken from the queue and that are not being written yet.
	unwritten atomic.Int64
	// OnAllocated, if set, is called for each Service that had no address and was assigned one.
	OnAllocated func(world.Key)
}

// transition is the Event for a condition that changed to a status.
type transition struct {
	condition string
	to        metav1.ConditionStatus
	kind      string
	reason    string
}

func transitions() []transition {
	return []transition{
		{v1alpha1.ConditionAllocated, metav1.ConditionTrue, corev1.EventTypeNormal, v1alpha1.EventIPAllocated},
		{v1alpha1.ConditionAllocated, metav1.ConditionFalse, corev1.EventTypeWarning, v1alpha1.EventAllocationFailed},
		{v1alpha1.ConditionAnnounced, metav1.ConditionTrue, corev1.EventTypeNormal, v1alpha1.EventAnnounced},
	}
}

// service reports the transitions in a status write. A Service that waits for an address is reported again if the
// reason changes, and an announced one if it is no longer usable in part only.
func (e *Events) service(before, after *corev1.Service) {
	if e.OnAllocated != nil && len(convert.Assigned(before)) == 0 && len(convert.Assigned(after)) > 0 {
		e.OnAllocated(world.Key{Namespace: after.Namespace, Name: after.Name})
	}
	about := &corev1.ObjectReference{Kind: "Service", APIVersion: "v1", Namespace: after.Namespace, Name: after.Name,
		UID: after.UID}
	e.allocatedAnother(about, before, after)
	e.waitsForProvider(about, after)
	failed := e.failures.observe(after.UID,
		meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAnnounced),
		meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAnnounced))
	for _, t := range transitions() {
		was := meta.FindStatusCondition(before.Status.Conditions, t.condition)
		is := meta.FindStatusCondition(after.Status.Conditions, t.condition)
		if is == nil || is.Status != t.to {
			continue
		}
		if was != nil && was.Reason == v1alpha1.ReasonDatabaseUnreachable && t.to == metav1.ConditionTrue && failed == "" {
			continue // only the connection to the databases was restored
		}
		if was == nil || was.Status != is.Status || (t.to == metav1.ConditionFalse && was.Reason != is.Reason) ||
			(was.Reason == v1alpha1.ReasonPartlyUsable || was.Reason == v1alpha1.ReasonZoneLagging) &&
				is.Reason == v1alpha1.ReasonAnnounced {
			e.transition(event{about, t.kind, t.reason, is.Message}, is)
		}
	}
	e.retained(about, before, after)
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAnnounced)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAnnounced)
	// Both are over soon if a gateway is being configured.
	waits := is != nil && (is.Reason == v1alpha1.ReasonNoActiveGateway || is.Reason == v1alpha1.ReasonNoGateway)
	if !waits {
		e.queue.cancel(about.UID, v1alpha1.EventAnnouncementFailed)
	}
	if is != nil && is.Status == metav1.ConditionFalse && failed != is.Reason &&
		(wasAnnounced(was) || isNewReason(was, is)) {
		failed := event{about, corev1.EventTypeWarning, v1alpha1.EventAnnouncementFailed, is.Message}
		if waits {
			e.queue.addLater(failed, claimDelay)
		} else {
			e.queue.add(failed)
		}
	}
	if c := conflict(after); c != nil && conflict(before) == nil {
		e.queue.add(event{about, corev1.EventTypeWarning, v1alpha1.EventAddressConflict, c.Message})
	}
	if len(before.Status.LoadBalancer.Ingress) > 0 && len(after.Status.LoadBalancer.Ingress) == 0 {
		e.queue.add(event{about, corev1.EventTypeNormal, v1alpha1.EventIPReleased, released(before, after)})
	}
}

// released returns which addresses a Service does not have any more, and why if its conditions do not say so.
func released(before, after *corev1.Service) string {
	var addrs []string
	for _, ingress := range before.Status.LoadBalancer.Ingress {
		addrs = append(addrs, ingress.IP)
	}
	text := "released " + strings.Join(addrs, ", ")
	switch {
	case after.Spec.Type != corev1.ServiceTypeLoadBalancer:
		text += ": spec.type is " + string(after.Spec.Type)
	case meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAllocated) == nil:
		text += ": ovnkube-slb does not serve the class of the Service any more (--load-balancer-class)"
	}
	return text
}

// transition reports a condition that has changed. A Service without an address whose claim is pending is reported if
// it still is after provideDelay.
func (e *Events) transition(t event, is *metav1.Condition) {
	if t.reason == v1alpha1.EventAllocationFailed && is.Reason == v1alpha1.ReasonClaimPending {
		e.queue.addLater(t, provideDelay)
	} else {
		e.queue.add(t)
	}
}

// waitsForProvider keeps the Event about a pending claim as new as the condition, and drops it when the claim is not
// pending any more.
func (e *Events) waitsForProvider(about *corev1.ObjectReference, after *corev1.Service) {
	c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAllocated)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonClaimPending {
		e.queue.amendLater(event{about, corev1.EventTypeWarning, v1alpha1.EventAllocationFailed, c.Message})
	} else {
		e.queue.cancel(about.UID, v1alpha1.EventAllocationFailed)
	}
}

// retained reports that a Service has begun to keep an address that it would not get any more.
func (e *Events) retained(about *corev1.ObjectReference, before, after *corev1.Service) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAllocated)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAllocated)
	if is != nil && is.Status == metav1.ConditionTrue && is.Reason == v1alpha1.ReasonAddressRetained &&
		(was == nil || was.Reason != is.Reason) {
		e.queue.add(event{about, corev1.EventTypeWarning, v1alpha1.EventAddressRetained, is.Message})
	}
}

// allocatedAnother reports that a Service that had an address, and whose condition stays the same, has a new one.
func (e *Events) allocatedAnother(about *corev1.ObjectReference, before, after *corev1.Service) {
	was := convert.Assigned(before)
	isNew := func(a netip.Addr) bool { return !slices.Contains(was, a) }
	c := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAllocated)
	if len(was) > 0 && slices.ContainsFunc(convert.Assigned(after), isNew) && c != nil &&
		c.Status == metav1.ConditionTrue &&
		meta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.ConditionAllocated) {
		e.queue.add(event{about, corev1.EventTypeNormal, v1alpha1.EventIPAllocated, c.Message})
	}
}

// isNewReason reports whether a Service that was not announced is not announced for another reason: kubectl describe
// shows Events of a Service, and no conditions. Each new Service waits for its endpoints, and other Events are about
// its address.
func isNewReason(was, is *metav1.Condition) bool {
	switch is.Reason {
	case v1alpha1.ReasonNoEndpoints, v1alpha1.ReasonNotAllocated, v1alpha1.ReasonAddressConflict:
		return false
	}
	return was == nil || was.Status != is.Status || was.Reason != is.Reason
}

// wasAnnounced reports whether a Service was announced, as far as its condition shows. A condition that is Unknown
// because the state cannot be observed does not contain the earlier state. The Service was most likely announced, so
// the result is true.
func wasAnnounced(c *metav1.Condition) bool {
	return c != nil && (c.Status == metav1.ConditionTrue || isUnobserved(c))
}

// conflict returns the condition with reason AddressConflict: another host answers for an address of the Service. The
// address is either withheld for that reason or announced anyway. conflict returns nil if there is no such condition.
func conflict(s *corev1.Service) *metav1.Condition {
	for _, kind := range []string{v1alpha1.ConditionAnnounced, v1alpha1.ConditionAllocated} {
		if c := meta.FindStatusCondition(s.Status.Conditions, kind); c != nil && c.Reason == v1alpha1.ReasonAddressConflict &&
			(kind == v1alpha1.ConditionAllocated) == (c.Status == metav1.ConditionTrue) {
			return c
		}
	}
	return nil
}

// Pool reports when a pool stops allocating addresses because allocation is suspended for all pools, and when it
// resumes.
func (e *Events) Pool(before, after *v1alpha1.IPAddressPool) {
	suspended := func(p *v1alpha1.IPAddressPool) bool {
		ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && (ready.Reason == v1alpha1.ReasonOpenShiftAssigns ||
			ready.Reason == v1alpha1.ReasonDisabledByMode)
	}
	was, is := suspended(before), suspended(after)
	if was == is {
		return
	}
	about := &corev1.ObjectReference{Kind: "IPAddressPool", APIVersion: v1alpha1.GroupVersion().String(), Name: after.Name,
		UID: after.UID}
	kind, reason := corev1.EventTypeNormal, v1alpha1.EventAllocationResumed
	if is {
		kind, reason = corev1.EventTypeWarning, v1alpha1.EventAllocationSuspended
	}
	e.queue.add(event{about, kind, reason, meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady).
		Message})
}

// Domain reports which shards moved to another gateway, when shards were not moved as requested, when a domain has no
// gateway for claimDelay, and when all its gateways are draining.
func (e *Events) Domain(before, after *v1alpha1.L2Domain) {
	e.moves(before, after)
	if m := after.Status.Move; m != nil && m.State == v1alpha1.MoveFailed &&
		(before.Status.Move == nil || *before.Status.Move != *m) {
		e.queue.add(event{aboutDomain(after), corev1.EventTypeWarning, v1alpha1.EventMoveFailed, m.Message})
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	e.queue.cancel(after.UID, v1alpha1.EventNoGateway)
	switch is.Reason {
	case v1alpha1.ReasonNoGateway:
		e.queue.addLater(event{aboutDomain(after), corev1.EventTypeWarning, v1alpha1.EventNoGateway, is.Message},
			claimDelay)
	case v1alpha1.ReasonGatewaysDraining:
		e.queue.add(event{aboutDomain(after), corev1.EventTypeWarning, v1alpha1.EventGatewaysDraining, is.Message})
	}
}

func aboutDomain(d *v1alpha1.L2Domain) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "L2Domain", APIVersion: v1alpha1.GroupVersion().String(), Name: d.Name,
		UID: d.UID}
}

// Peer reports when the nodes have established all sessions with a peer, and when one is lost. The first status of a
// new peer without sessions is not reported.
func (e *Events) Peer(before, after *v1alpha1.BGPPeer) {
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	about := &corev1.ObjectReference{Kind: "BGPPeer", APIVersion: v1alpha1.GroupVersion().String(), Name: after.Name,
		UID: after.UID}
	switch {
	case is.Status == metav1.ConditionTrue:
		e.queue.add(event{about, corev1.EventTypeNormal, v1alpha1.EventSessionsUp, is.Message})
	case was != nil && (is.Reason == v1alpha1.ReasonSessionsDown || is.Reason == v1alpha1.ReasonNoSession):
		e.queue.add(event{about, corev1.EventTypeWarning, v1alpha1.EventSessionsDown, is.Message})
	}
}

// moves reports which shards moved to another gateway, in one Event: a failed gateway may have been active for all
// shards.
func (e *Events) moves(before, after *v1alpha1.L2Domain) {
	moves, lost := moved(before.Status.Shards, after.Status.Shards)
	if len(moves) == 0 {
		return
	}
	kind := corev1.EventTypeNormal
	if lost {
		kind = corev1.EventTypeWarning
	}
	e.queue.add(event{aboutDomain(after), kind, v1alpha1.EventGatewayChanged, status.Truncate(strings.Join(moves, "; "))})
}

// moved returns a description of the moves of shards between gateways, and whether any shard has no gateway now.
func moved(before, after []v1alpha1.ShardStatus) (moves []string, lost bool) {
	was := make(map[int32]v1alpha1.ShardStatus, len(before))
	for _, s := range before {
		was[s.Index] = s
	}
	type way struct{ from, to string }
	shards := map[way][]string{}
	var ways []way
	for _, s := range after {
		old, used := was[s.Index]
		if !used || old.Active == s.Active {
			continue
		}
		w := way{old.Active, s.Active}
		if shards[w] == nil {
			ways = append(ways, w)
		}
		shards[w] = append(shards[w], fmt.Sprint(s.Index))
	}
	for _, w := range ways {
		list := "shard " + strings.Join(shards[w], ", ")
		switch {
		case w.to == "":
			lost = true
			moves = append(moves, fmt.Sprintf("%s: no active gateway; the last was %s", list, w.from))
		case w.from == "":
			moves = append(moves, fmt.Sprintf("%s: gateway %s became active; there was no active gateway", list, w.to))
		default:
			moves = append(moves, fmt.Sprintf("%s: moved from gateway %s to %s", list, w.from, w.to))
		}
	}
	return moves, lost
}
