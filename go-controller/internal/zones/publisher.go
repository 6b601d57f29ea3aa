// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// writers is the number of ServicePlans that are written at the same time.
const writers = 8

// Options configure a Publisher.
type Options struct {
	// Clients write ServicePlans.
	Clients *kube.Clients
	// Changed is called when more is known about the zones, Drifted when another client changed a ServicePlan. Both are
	// called from any goroutine and must not block.
	Changed, Drifted func()
	// Progress is called after each request to write or delete a ServicePlan, also from any goroutine: Apply and Prune
	// may make thousands.
	Progress func()
}

// Publisher publishes plans. It implements dataplane.Dataplane.
type Publisher struct {
	options Options
	synced  chan struct{}

	mu sync.Mutex
	// informer reads ServicePlans; nil before Run.
	informer cache.Controller
	// objects are the newest known ServicePlans, by name.
	objects map[string]*v1alpha1.ServicePlan
	// holders are the names of the ServicePlans in objects that have an address, by address.
	holders map[string]map[string]bool
	// confirmed are the gateways whose zones have applied a version of a plan that is as the present one for a status,
	// which does not depend on single backends, by the name of the plan, and since when each had claimed the shard then
	// (the zero time if it had not). A gateway that has lost a shard and claimed it again may have lost its rows, too.
	confirmed map[string]map[gatewayOf]time.Time
	// awaited is the highest version that a zone had to apply before a status was known.
	awaited uint64
	// active are the active gateways of the shards as last observed, or those that are to claim them. unapplied are the
	// plans that the zone of one of them had not applied, by name.
	active    map[world.ShardID]*world.Node
	unapplied map[string]bool
	// wanted are the plans as they are or will be published, by name; nil before the first attempt to write one. Their
	// form depends on what was published before, such as the slots of backends, so that it can't be derived again from
	// the plans to see whether another client has changed an object.
	wanted map[string]*v1alpha1.ServicePlanSpec
	// pruned is set once Prune has deleted the ServicePlans that no Service needs. One that appears later is drift: a
	// write that timed out, or that of a former leader, may arrive late.
	pruned bool
	// pace limits how much is written for a namespace.
	pace pace
	// deleted are the UIDs of ServicePlans that this process deletes, until the API server reports that they are gone.
	// What it reports of them before is old.
	deleted map[types.UID]bool
	// unnumbered are the shards without an ordinal, and why.
	unnumbered dataplane.ShardsError
	// claims are the gateways' claims of shards, as first seen; nil before the first snapshot. former are those of nodes
	// that are no gateways of the shard any more and have not released it, as far as they report.
	claims, former map[world.ShardID]map[string]seenClaim
	// unclaimed are the shards with addresses that no gateway has claimed, and since when which one is to claim it.
	unclaimed map[world.ShardID]unclaimed
	// missed are the gateways that had to claim a shard and did not.
	missed map[gatewayOf]missedClaim
	// backed is the highest version of the plans with backends on a node, or a higher one of a plan that had some, by
	// node.
	backed map[string]uint64
	// lags are what zones have not applied, by node. anyLags is set if that has lasted for one of them. lagCheck is when
	// that is looked at again.
	lags     map[string]*lag
	anyLags  bool
	lagCheck time.Time
}

var _ dataplane.Dataplane = (*Publisher)(nil)

// New returns a Publisher. It publishes nothing before Run has read the existing ServicePlans.
func New(o Options) *Publisher {
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.Progress == nil {
		o.Progress = func() {}
	}
	return &Publisher{options: o, synced: make(chan struct{}), objects: map[string]*v1alpha1.ServicePlan{},
		holders: map[string]map[string]bool{}, backed: map[string]uint64{}, confirmed: map[string]map[gatewayOf]time.Time{},
		wanted:  map[string]*v1alpha1.ServicePlanSpec{},
		deleted: map[types.UID]bool{}, pace: newPace(paceRate, paceBurst), missed: map[gatewayOf]missedClaim{}}
}

// Run reads ServicePlans until ctx ends.
func (p *Publisher) Run(ctx context.Context) error {
	informer := kube.NewPlanInformer(p.options.Clients, p.observe)
	p.mu.Lock()
	p.informer = informer
	p.mu.Unlock()
	var running errgroup.Group
	running.Go(func() error { informer.RunWithContext(ctx); return nil })
	running.Go(func() error { kube.LogUnreadKinds(ctx, p.UnreadKinds); return nil })
	running.Go(func() error {
		if kube.WaitForInformer(ctx, informer) {
			close(p.synced)
		}
		return nil
	})
	return running.Wait()
}

// Synced returns a channel that is closed once the existing ServicePlans have been read.
func (p *Publisher) Synced() <-chan struct{} { return p.synced }

// UnreadKinds implements controller.Zones.
func (p *Publisher) UnreadKinds() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return kube.UnreadKinds(map[string]cache.Controller{"serviceplans": p.informer})
}

// Unreachable returns nil: agents connect to the databases.
func (p *Publisher) Unreachable() error { return nil }

// Unread returns nil: what agents report is read together with the nodes.
func (p *Publisher) Unread() error { return nil }

// observe records a ServicePlan. It reports drift if another client wrote it.
func (p *Publisher) observe(old, now *v1alpha1.ServicePlan) {
	p.mu.Lock()
	drifted := false
	switch {
	case now == nil:
		delete(p.deleted, old.UID)
		if known := p.objects[old.Name]; known == nil || known.UID == old.UID {
			p.forget(old.Name)
			_, drifted = p.wanted[old.Name]
		}
	case p.deleted[now.UID] || !isNewer(now, p.objects[now.Name]) && !isRestored(old, p.objects[now.Name]):
	default:
		wanted := p.wanted[now.Name]
		drifted = wanted == nil && p.pruned || wanted != nil && !equality.Semantic.DeepEqual(*wanted, now.Spec)
		p.store(now)
	}
	p.mu.Unlock()
	if drifted {
		p.options.Drifted()
	}
}

// store stores the newest version of a ServicePlan. p.mu must be held.
func (p *Publisher) store(o *v1alpha1.ServicePlan) {
	if known := p.objects[o.Name]; known == nil || known.UID != o.UID || !sameForStatus(&known.Spec, &o.Spec) {
		delete(p.confirmed, o.Name)
	}
	if len(p.confirmed[o.Name]) == 0 {
		p.awaited = max(p.awaited, Version(o))
	}
	p.release(o.Name)
	p.objects[o.Name] = o
	p.addBacked(o, func(string) bool { return true })
	for i := range o.Spec.VIPs {
		address := o.Spec.VIPs[i].Address
		if p.holders[address] == nil {
			p.holders[address] = map[string]bool{}
		}
		p.holders[address][o.Name] = true
	}
}

// forget removes a ServicePlan that no longer exists. p.mu must be held.
func (p *Publisher) forget(name string) {
	p.release(name)
	delete(p.objects, name)
	delete(p.confirmed, name)
}

// release removes a ServicePlan from holders. p.mu must be held.
func (p *Publisher) release(name string) {
	o := p.objects[name]
	if o == nil {
		return
	}
	for i := range o.Spec.VIPs {
		address := o.Spec.VIPs[i].Address
		if delete(p.holders[address], name); len(p.holders[address]) == 0 {
			delete(p.holders, address)
		}
	}
}

// sameForStatus reports whether two versions of a plan differ at most in the backends of ports that have some in both.
func sameForStatus(a, b *v1alpha1.ServicePlanSpec) bool {
	some := func(s *v1alpha1.ServicePlanSpec) *v1alpha1.ServicePlanSpec {
		out := *s
		out.Listeners = slices.Clone(s.Listeners)
		for i := range out.Listeners {
			out.Listeners[i].Backends = make([]v1alpha1.PlannedBackend, min(len(s.Listeners[i].Backends), 1))
			out.Listeners[i].Draining = nil
		}
		return &out
	}
	return equality.Semantic.DeepEqual(some(a), some(b))
}

// Awaited returns the version of ServicePlans up to which statuses await what zones have applied.
func (p *Publisher) Awaited() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.awaited
}

// isNewer reports whether a version of an object is newer than the known one (KEP-5504).
func isNewer(o, known *v1alpha1.ServicePlan) bool {
	return known == nil || known.UID != o.UID || Version(o) > Version(known)
}

// isRestored reports whether whatever follows a version that a watch has delivered is the present one, even if its
// version is lower: the watch had already delivered the known one, so etcd was restored from a backup.
func isRestored(delivered, known *v1alpha1.ServicePlan) bool {
	return delivered != nil && known != nil && delivered.UID == known.UID && Version(delivered) >= Version(known)
}

// Version returns the resource version of a ServicePlan. Those of one kind can be compared (KEP-5504).
func Version(o *v1alpha1.ServicePlan) uint64 {
	n, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Configure implements dataplane.Dataplane. The shards are published in the statuses of L2Domains, so nothing is
// written here. It returns an error for the shards without an ordinal, which no zone can program.
func (p *Publisher) Configure(_ context.Context, topology *plan.Topology) error {
	left := dataplane.ShardsError{}
	for _, d := range topology.Domains {
		for _, s := range d.Shards {
			if s.Ordinal == place.NoOrdinal {
				left[s.ID] = fmt.Sprintf("at most %d shards with addresses are supported, of all L2Domains together",
					world.MaxOrdinals)
			}
		}
	}
	p.mu.Lock()
	p.unnumbered = left
	p.mu.Unlock()
	if len(left) > 0 {
		return left
	}
	return nil
}

// Apply implements dataplane.Dataplane.
func (p *Publisher) Apply(ctx context.Context, changes []dataplane.Change) map[world.Key]error {
	select {
	case <-p.synced:
	default: // without the existing plans, the slots of backends are unknown
		failed := map[world.Key]error{}
		for _, c := range changes {
			failed[c.Key] = errors.New("the existing ServicePlans have not been read yet")
		}
		return failed
	}
	failed := p.publishAll(ctx, changes)
	// What others give up by the same changes has been taken from them now.
	taken := slices.DeleteFunc(slices.Clone(changes), func(c dataplane.Change) bool {
		return !errors.As(failed[c.Key], new(errTaken))
	})
	if len(taken) == 0 {
		return failed
	}
	for _, c := range taken {
		delete(failed, c.Key)
	}
	for key, err := range p.publishAll(ctx, taken) {
		if errors.As(err, new(errTaken)) {
			err = dataplane.Postponed{Until: time.Now().Add(takenPause)}
		}
		failed[key] = err
	}
	return failed
}

// publishAll publishes several plans at a time, and returns the errors.
func (p *Publisher) publishAll(ctx context.Context, changes []dataplane.Change) map[world.Key]error {
	var mu sync.Mutex
	failed := map[world.Key]error{}
	var running errgroup.Group
	running.SetLimit(writers)
	for _, c := range changes {
		running.Go(func() error {
			if err := p.publish(ctx, c.Key, c.Want); err != nil {
				mu.Lock()
				failed[c.Key] = err
				mu.Unlock()
			}
			return nil
		})
	}
	_ = running.Wait() // no function returns an error
	return failed
}

// Prune implements dataplane.Dataplane.
func (p *Publisher) Prune(ctx context.Context, keep func(world.Key) bool) error {
	p.mu.Lock()
	p.pruned = true
	p.pace.prune(time.Now())
	var gone []*v1alpha1.ServicePlan
	for _, o := range p.objects {
		key := world.Key{Namespace: o.Spec.Namespace, Name: o.Spec.Name}
		switch {
		case Name(key) != o.Name: // not ours, or edited: if the name is that of a plan, it is written again
			gone = append(gone, o)
		case !keep(key):
			gone = append(gone, o)
			delete(p.wanted, o.Name)
		}
	}
	p.mu.Unlock()
	var errs []error
	for _, o := range gone {
		errs = append(errs, p.remove(ctx, o))
	}
	return errors.Join(errs...)
}

// Pending implements dataplane.Dataplane. It returns the zero time: agents report what has taken effect in zones.
func (p *Publisher) Pending(world.Key) time.Time { return time.Time{} }
