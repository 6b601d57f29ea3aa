// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"maps"
	"slices"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A ServicePlan is written as a whole, to etcd and to each node, and a tenant can change all of a namespace by one flip
// of a pod: 300,000 backends are 15 to 35 MB. The plans of a namespace are written at once up to paceBurst bytes, and
// further ones at paceRate bytes per second, so that etcd stores at most 300 MB of them between two compactions, which
// are five minutes apart; its default quota is 2 GiB. A namespace whose plans have less than paceBurst together, such
// as 800 Services with 100 backends each, does not wait after a single event such as the loss of a node. Rolling
// updates of any number of Services with up to 400 backends don't reach paceRate: a backend takes up to 120 bytes, and
// kube-controller-manager writes 20 EndpointSlices per second (--kube-api-qps).
//
// Plans of up to smallPlan bytes, and those that must not wait for others, have as much of their own.
const (
	paceRate  = 1_000_000
	paceBurst = 10_000_000
	smallPlan = 64 << 10
)

// pace limits what is written of ServicePlans. Only plans that are written or wait count, each with its newest size. It
// must not be used concurrently.
type pace struct {
	bytesPerSecond, burst int
	// paid is when plans would have been written if each had waited for its bytes. It may be up to burst bytes in the
	// past.
	paid map[pacedPlans]time.Time
	// turns are those of the plans that wait, or could not be written when they were due.
	turns map[world.Key]turn
}

// pacedPlans are the plans that share a limit.
type pacedPlans struct {
	namespace string
	first     bool
}

// turn is when a plan may be written, and for how long others wait for it.
type turn struct {
	of   pacedPlans
	due  time.Time
	cost time.Duration
}

func newPace(bytesPerSecond, burst int) pace {
	return pace{bytesPerSecond, burst, map[pacedPlans]time.Time{}, map[world.Key]turn{}}
}

// next returns when a plan of this size may be written. After that, forget must be called. A plan that waits keeps its
// turn when it changes. One that has become urgent may get an earlier one.
func (p *pace) next(key world.Key, size int, urgent bool, now time.Time) time.Time {
	is := turn{pacedPlans{key.Namespace, urgent || size <= smallPlan}, now, p.cost(size)}
	was, waits := p.turns[key]
	if waits && (!now.Before(was.due) || !is.of.first || p.paidAfter(is, now).After(now)) {
		p.paid[was.of] = p.paid[was.of].Add(is.cost - was.cost)
		was.cost = is.cost
		p.turns[key] = was
		return was.due
	}
	p.endTurn(key, false)
	p.paid[is.of] = p.paidAfter(is, now)
	if p.paid[is.of].After(now) {
		is.due = p.paid[is.of]
	}
	p.turns[key] = is
	return is.due
}

func (p *pace) cost(size int) time.Duration {
	return time.Duration(size) * time.Second / time.Duration(p.bytesPerSecond)
}

// paidAfter returns what paid is after a turn.
func (p *pace) paidAfter(t turn, now time.Time) time.Time {
	paid := now.Add(-p.cost(p.burst))
	if p.paid[t.of].After(paid) {
		paid = p.paid[t.of]
	}
	return paid.Add(t.cost)
}

// endTurn ends the turn of a plan. Others don't wait for it if it was not written.
func (p *pace) endTurn(key world.Key, written bool) {
	if t, ok := p.turns[key]; ok && !written {
		p.paid[t.of] = p.paid[t.of].Add(-t.cost)
	}
	delete(p.turns, key)
}

// prune frees what is as if it had never been used.
func (p *pace) prune(now time.Time) {
	full := now.Add(-p.cost(p.burst))
	maps.DeleteFunc(p.paid, func(_ pacedPlans, paid time.Time) bool { return !paid.After(full) })
}

// releasesAddresses reports whether a plan lacks addresses or ports of the published one. Others may get them, and the
// zones would send their clients to the backends of this Service.
func releasesAddresses(published, want *v1alpha1.ServicePlanSpec) bool {
	addresses, listeners := map[string]bool{}, map[listener]bool{}
	for i := range want.VIPs {
		addresses[want.VIPs[i].Address] = true
	}
	for i := range want.Listeners {
		listeners[listenerOf(&want.Listeners[i])] = true
	}
	return slices.ContainsFunc(published.VIPs, func(v v1alpha1.PlannedVIP) bool { return !addresses[v.Address] }) ||
		slices.ContainsFunc(published.Listeners, func(l v1alpha1.PlannedListener) bool {
			return !listeners[listenerOf(&l)]
		})
}
