// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// writeTimeout limits one write.
const writeTimeout = 5 * time.Second

// sync writes the desired assignment to the nodes, except for addresses that another node may still hold. It does not
// wait until the nodes have applied it: when that is known, the Services are applied again. d.mu must be held; sync
// releases it during writes.
func (d *Dataplane) sync(ctx context.Context) *failures {
	failed := newFailures()
	wish := sdn.Want(d.topology, d.plans, d.have, func(world.Key) bool { return !d.complete })
	if d.want == nil {
		d.adopt()
	}
	d.want, failed.keys = wish.Table, wish.Failed
	d.place()
	d.renew()
	d.busy = true
	d.write(ctx, sdn.Release(d.have, d.want), failed)
	d.instructed()
	_, failed.changed = d.concerned(d.lose(d.prober.losses()))
	d.write(ctx, d.takes(failed), failed)
	d.busy = false
	_, changed := d.concerned(d.lose(d.prober.losses()))
	failed.changed = append(failed.changed, changed...)
	d.confirmations.forget(d.have, d.placed)
	d.activate()
	d.ask()
	d.repair(func(node string) bool { return failed.nodes[node] == nil }) // a failed one is written again anyway
	return failed
}

// adopt has the nodes confirm what an earlier controller has assigned to them. d.mu must be held.
func (d *Dataplane) adopt() {
	for shard, state := range d.have.ShardStates(d.orders) {
		d.active[shard] = state.Active
	}
	for node, held := range d.have {
		s := sdn.Step{Node: node}
		for a := range held {
			s.New = append(s.New, a)
		}
		d.stepWritten(s, d.versions[node])
	}
}

// takes returns the steps that assign the addresses that no other node can still hold, without those to nodes that
// could not be updated. d.mu must be held.
func (d *Dataplane) takes(failed *failures) []sdn.Step {
	waits := d.waits((*request).awaited)
	steps := sdn.Take(d.have, d.want, func(a netip.Addr) bool { return waits[a] })
	for node := range d.unreadable {
		if !slices.ContainsFunc(steps, func(s sdn.Step) bool { return s.Node == node }) {
			steps = append(steps, sdn.Step{Node: node, Held: d.have.Of(node)})
		}
	}
	return slices.DeleteFunc(steps, func(s sdn.Step) bool {
		err := failed.nodes[s.Node]
		if err != nil {
			failed.node(s, err) // its addresses have failed, too
		}
		return err != nil
	})
}

// repair has the annotations of nodes that affected returns true for repaired if they differ from the desired ones,
// except for addresses that are handed over. d.mu must be held.
func (d *Dataplane) repair(affected func(node string) bool) {
	nodes := maps.Clone(d.unreadable)
	waits := d.waits(func(*request) bool { return true })
	for _, s := range sdn.Take(d.have, d.want, func(a netip.Addr) bool { return waits[a] }) {
		nodes[s.Node] = true
	}
	for node := range nodes {
		if !affected(node) {
			continue
		}
		if d.repairs[node] == nil {
			d.repairs[node] = dataplane.NewRepairs(d.drifted)
		}
		d.repairs[node].Needed()
	}
}

// write executes steps concurrently. d.mu must be held; write releases it meanwhile.
func (d *Dataplane) write(ctx context.Context, steps []sdn.Step, failed *failures) {
	d.mu.Unlock()
	defer d.mu.Lock()
	var writing sync.WaitGroup
	for _, s := range steps {
		writing.Go(func() {
			version, err := d.annotate(ctx, s)
			d.mu.Lock()
			defer d.mu.Unlock()
			if err != nil {
				failed.node(s, err)
				return
			}
			d.wrote(s, version)
		})
	}
	writing.Wait()
}

// annotate writes a node's annotation and returns the new version of the object, or an empty one if the node does not
// exist and has nothing to take.
func (d *Dataplane) annotate(ctx context.Context, s sdn.Step) (version string, err error) {
	var value *string
	if text := sdn.Format(s.Held); text != "" {
		value = &text
	}
	metadata := map[string]any{"annotations": map[string]*string{v1alpha1.AnnotationVIPs: value}}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return "", fmt.Errorf("node %s: %w", s.Node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	n, err := d.nodes.Patch(ctx, s.Node, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		return n.ResourceVersion, nil
	case apierrors.IsNotFound(err) && len(s.New) == 0:
		return "", nil
	default:
		return "", fmt.Errorf("annotate node %s: %w", s.Node, err)
	}
}

// wrote records a step that was written. d.mu must be held.
func (d *Dataplane) wrote(s sdn.Step, version string) {
	d.stepWritten(s, version)
	if version != "" {
		if revision.Newer(d.versions[s.Node], version) {
			return // another client has written meanwhile, and that version was already observed
		}
		d.versions[s.Node] = version
	}
	delete(d.unreadable, s.Node)
	delete(d.have, s.Node)
	for _, held := range s.Held {
		d.have.Add(s.Node, held)
	}
}
