// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// writeTimeout is how long the API server has to respond to a write.
const writeTimeout = 10 * time.Second

// takenPause is the time until a plan is tried again that has an address and port of another published one.
const takenPause = 100 * time.Millisecond

// errTaken is the error of a plan without addresses that it should have, because another published plan has the same
// with the same port. Zones would send the clients of one Service to the backends of the other.
type errTaken struct{}

func (errTaken) Error() string { return "another ServicePlan has an address and port of this one" }

// taken returns the addresses of a plan that another published one has with a port of it. Decisions give a port of an
// address to one Service at a time, so the other plan is out of date: its turn has not come yet, or its Service is gone
// and it was not pruned. p.mu must be held.
func (p *Publisher) taken(name string, want *plan.Service) map[netip.Addr]bool {
	others := map[string]bool{} // each is looked at once: Services may share thousands of addresses
	for _, v := range want.VIPs {
		for other := range p.holders[v.Addr.String()] {
			if other != name {
				others[other] = true
			}
		}
	}
	if len(others) == 0 {
		return nil
	}
	own := make(map[listener]netip.Addr, len(want.Listeners))
	for _, l := range want.Listeners {
		own[listener{l.VIP.String(), string(l.Protocol), int32(l.Port)}] = l.VIP
	}
	out := map[netip.Addr]bool{}
	for other := range others {
		for i := range p.objects[other].Spec.Listeners {
			if vip, has := own[listenerOf(&p.objects[other].Spec.Listeners[i])]; has {
				out[vip] = true
			}
		}
	}
	return out
}

// publish writes the plan of one Service, or deletes it if there is none. It omits the addresses of shards without
// an ordinal and those that another plan has, and returns an error for them. If the plan must wait, it is Postponed:
// the zones have the published one until then, or none if the plan no longer has all of its addresses and ports.
func (p *Publisher) publish(ctx context.Context, key world.Key, want *plan.Service) error {
	name := Name(key)
	p.mu.Lock()
	have, unnumbered := p.objects[name], p.unnumbered
	if want == nil {
		delete(p.wanted, name)
		p.pace.endTurn(key, false)
	}
	p.mu.Unlock()
	switch {
	case want == nil && have == nil:
		return nil
	case want == nil:
		return p.remove(ctx, have)
	}
	left := dataplane.ShardsError{}
	want = want.Only(func(v plan.VIP) bool {
		why, without := unnumbered[v.Shard]
		if without {
			left[v.Shard] = why
		}
		return !without
	})
	p.mu.Lock()
	taken := p.taken(name, want)
	p.mu.Unlock()
	if len(taken) > 0 {
		want = want.Only(func(v plan.VIP) bool { return !taken[v.Addr] })
		if have == nil && len(want.VIPs) == 0 {
			return errTaken{}
		}
	}
	var published *v1alpha1.ServicePlanSpec
	if have != nil {
		published = &have.Spec
	}
	spec, tooLarge := Fit(want, published)
	changed := have == nil || !equality.Semantic.DeepEqual(*published, spec)
	if changed {
		if err := p.writeInTurn(ctx, key, have, spec); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.wanted[name] = &spec
	p.pace.endTurn(key, changed)
	p.mu.Unlock()
	switch {
	case len(taken) > 0:
		return errTaken{}
	case len(left) > 0:
		return left
	}
	return tooLarge
}

// writeInTurn writes a ServicePlan if it need not wait, and otherwise returns when it may be written.
func (p *Publisher) writeInTurn(ctx context.Context, key world.Key, have *v1alpha1.ServicePlan,
	spec v1alpha1.ServicePlanSpec) error {
	name := Name(key)
	free := have != nil && releasesAddresses(&have.Spec, &spec)
	urgent := free || have != nil && !equality.Semantic.DeepEqual(have.Spec.SourceRanges, spec.SourceRanges)
	now := time.Now()
	p.mu.Lock()
	due := p.pace.next(key, sizeOf(&spec), urgent, now)
	waits := due.After(now)
	switch {
	case !waits:
		p.wanted[name] = &spec
	case free:
		delete(p.wanted, name)
	}
	p.mu.Unlock()
	if !waits {
		return p.write(ctx, name, have, spec)
	}
	if free {
		if err := p.remove(ctx, have); err != nil {
			return err
		}
	}
	return dataplane.Postponed{Until: due}
}

// remove deletes a ServicePlan.
func (p *Publisher) remove(ctx context.Context, o *v1alpha1.ServicePlan) error {
	p.mu.Lock()
	p.deleted[o.UID] = true
	p.mu.Unlock()
	defer p.options.Progress()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := p.options.Clients.Plans.Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.UID},
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil { // there may be no report that it is gone
		delete(p.deleted, o.UID)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ServicePlan %s: %w", o.Name, err)
	}
	if known := p.objects[o.Name]; known != nil && known.UID == o.UID {
		p.forget(o.Name)
	}
	return nil
}

// read replaces what is known of a ServicePlan by what the API server has. After etcd was restored from a backup, no
// watch may report an object that has not changed since, and the known one is of a time that has not been.
func (p *Publisher) read(ctx context.Context, name string) error {
	list, err := p.options.Clients.Plans.List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(name)
	for i := range list.Items {
		if list.Items[i].Name == name {
			list.Items[i].SetManagedFields(nil)
			p.store(&list.Items[i])
		}
	}
	return nil
}

// write creates or updates a ServicePlan.
func (p *Publisher) write(ctx context.Context, name string, have *v1alpha1.ServicePlan,
	spec v1alpha1.ServicePlanSpec) error {
	var got *v1alpha1.ServicePlan
	var err error
	defer p.options.Progress()
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if have == nil {
		got, err = p.options.Clients.Plans.Create(ctx, &v1alpha1.ServicePlan{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	} else {
		next := have.DeepCopy()
		next.Spec = spec
		got, err = p.options.Clients.Plans.Update(ctx, next, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		err = errors.Join(err, p.read(ctx, name))
	}
	if err != nil {
		return fmt.Errorf("write ServicePlan %s: %w", name, err)
	}
	got.SetManagedFields(nil)
	p.mu.Lock()
	if isNewer(got, p.objects[name]) {
		p.store(got)
	}
	p.mu.Unlock()
	return nil
}
