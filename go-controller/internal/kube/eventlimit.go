// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// limitBurst is the number of Events of a type about one object that are written without a limit, and limitPause
	// the time after which one more is: the limits of client-go, which drops the others, including the last one.
	limitBurst = 25
	limitPause = 5 * time.Minute
	// minLimits is the number of limits from which on those that have no effect any more are removed.
	minLimits = 4096
)

// eventLimit limits the Events about each object. Of those beyond the limit it holds the last one until the limit
// allows it, so that the last state of the object is reported. The zero value has no limits in effect.
type eventLimit struct {
	spent map[limitKey]spentTime
	held  map[objectKey]heldEvent
	// most is the number of limits from which on they are pruned.
	most int
}

type objectKey struct {
	kind, namespace, name string
	uid                   types.UID
}

// limitKey is an object and the type of its Events.
type limitKey struct {
	objectKey
	kind string
}

// spentTime is when all Events of a limit are available again.
type spentTime time.Time

type heldEvent struct {
	event
	since time.Time
}

func keyOf(e event) objectKey {
	return objectKey{e.about.Kind, e.about.Namespace, e.about.Name, e.about.UID}
}

// admit reports whether an Event may be written now. If not, it replaces the one about the object that is held.
func (l *eventLimit) admit(now time.Time, e event) bool {
	object := keyOf(e)
	if l.spend(now, limitKey{object, e.kind}) {
		delete(l.held, object)
		return true
	}
	if l.held == nil {
		l.held = map[objectKey]heldEvent{}
	}
	l.held[object] = heldEvent{e, now}
	return false
}

// takeAllowed removes and returns up to n of the Events that are held and may be written now, the oldest first.
func (l *eventLimit) takeAllowed(now time.Time, n int) []event {
	var list []heldEvent
	for object, e := range l.held {
		if l.allows(now, limitKey{object, e.kind}) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b heldEvent) int { return a.since.Compare(b.since) })
	var out []event
	for _, e := range list[:min(len(list), n)] {
		object := keyOf(e.event)
		l.spend(now, limitKey{object, e.kind})
		delete(l.held, object)
		out = append(out, e.event)
	}
	return out
}

// allows reports whether one more Event may be written.
func (l *eventLimit) allows(now time.Time, key limitKey) bool {
	return !time.Time(l.spent[key]).After(now.Add((limitBurst - 1) * limitPause))
}

// spend counts an Event, and reports whether it may be written.
func (l *eventLimit) spend(now time.Time, key limitKey) bool {
	if !l.allows(now, key) {
		return false
	}
	if l.spent == nil {
		l.spent = map[limitKey]spentTime{}
	}
	from := time.Time(l.spent[key])
	if from.Before(now) {
		from = now
	}
	l.spent[key] = spentTime(from.Add(limitPause))
	if len(l.spent) > max(minLimits, l.most) {
		maps.DeleteFunc(l.spent, func(_ limitKey, until spentTime) bool { return !time.Time(until).After(now) })
		l.most = 2 * len(l.spent)
	}
	return true
}
