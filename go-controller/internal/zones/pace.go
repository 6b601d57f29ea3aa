// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

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

// pace limits what is written of ServicePlans. It must not be used concurrently.
type pace struct {
	rate   rate.Limit // bytes per second
	burst  int        // bytes
	limits map[pacedPlans]*rate.Limiter
	// due are the plans that wait, or could not be written when they were due, and from when on each may be written.
	due map[world.Key]time.Time
}

// pacedPlans are the plans that share a limit.
type pacedPlans struct {
	namespace string
	first     bool
}

func newPace(bytesPerSecond rate.Limit, burst int) pace {
	return pace{rate: bytesPerSecond, burst: burst, limits: map[pacedPlans]*rate.Limiter{},
		due: map[world.Key]time.Time{}}
}

// next returns when a plan of this size may be written. After that, forget must be called. A plan that waits keeps its
// turn when it changes. One that has become urgent may get an earlier one.
func (p *pace) next(key world.Key, size int, urgent bool, now time.Time) time.Time {
	due, waits := p.due[key]
	first := urgent || size <= smallPlan
	if waits && (!now.Before(due) || !first) {
		return due
	}
	of := pacedPlans{key.Namespace, first}
	limit := p.limits[of]
	if limit == nil {
		limit = rate.NewLimiter(p.rate, p.burst)
		p.limits[of] = limit
	}
	if !waits || limit.TokensAt(now) >= float64(size) {
		p.due[key] = now.Add(limit.ReserveN(now, size).DelayFrom(now))
	}
	return p.due[key]
}

// forget ends the turn of a plan: it was written, or need not be.
func (p *pace) forget(key world.Key) { delete(p.due, key) }

// prune frees what is as if it had never been used, and turns that were not taken.
func (p *pace) prune(now time.Time) {
	maps.DeleteFunc(p.due, func(_ world.Key, due time.Time) bool { return now.Sub(due) > time.Hour })
	maps.DeleteFunc(p.limits, func(_ pacedPlans, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(p.burst) })
}

// frees reports whether a plan lacks addresses or ports of the published one. Others may get them, and the zones would
// send their clients to the backends of this Service.
func frees(published, want *v1alpha1.ServicePlanSpec) bool {
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
