// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

const (
	// handoverTime is how long a gateway may take to give up or to take addresses.
	handoverTime = 2 * time.Second
	// lateHandoverTime is how long one may take to take addresses that has not confirmed in time within lateTime. All
	// other changes wait meanwhile. One that has applied its assignment answers as fast as a health check.
	lateHandoverTime, lateTime = probeTimeout, time.Minute
	// lookEvery is the interval between checks whether an awaited gateway is lost.
	lookEvery = 50 * time.Millisecond
	// writeTimeout limits one write.
	writeTimeout = 5 * time.Second
)

var errUnconfirmed = fmt.Errorf("its agent does not confirm it in time (%s)", handoverTime)

// handover moves the nodes from their current to the desired assignment.
type handover struct {
	*Dataplane
	have, want sdn.Table
	// unreadable are the nodes whose annotation must still be rewritten.
	unreadable map[string]bool
	agents     map[string]netip.AddrPort
	// waits maps addresses that a node may still hold to that node.
	waits  map[netip.Addr]string
	failed *failures
	// mu guards versions, late and, during writes, have, unreadable and failed.
	mu       sync.Mutex
	versions map[string]string
}

// sync writes the desired assignment to the nodes and waits until they have applied it.
func (d *Dataplane) sync(ctx context.Context) *failures {
	d.mu.Lock()
	if d.want == nil { // the nodes may not hold what an earlier controller has assigned to them
		d.unconfirmed = d.have.Clone()
	}
	h := &handover{
		Dataplane: d, have: d.have.Clone(), unreadable: maps.Clone(d.unreadable), agents: d.agents,
		waits: map[netip.Addr]string{}, failed: newFailures(), versions: map[string]string{},
	}
	wish := sdn.Want(d.topology, d.plans, h.have, func(world.Key) bool { return !d.complete })
	h.want, h.failed.keys = wish.Table, wish.Failed
	d.want, d.busy = h.want, true
	d.mu.Unlock()
	h.run(ctx)
	d.mu.Lock()
	d.busy = false
	before := d.shardStates()
	d.confirmed = d.have.Without(d.unconfirmed)
	if !maps.EqualFunc(before, d.shardStates(), func(a, b world.ShardState) bool { return a.Active == b.Active }) {
		d.changed()
	}
	drift := len(h.failed.nodes) == 0 && d.hasDrifted()
	d.mu.Unlock()
	if drift {
		d.drifted()
	}
	return h.failed
}

func (h *handover) run(ctx context.Context) {
	h.write(ctx, sdn.Release(h.have, h.want))
	releasing := map[string]bool{}
	lost := h.prober.losses()
	for a, node := range h.waits {
		if _, hasAgent := h.agents[node]; h.failed.nodes[node] == nil && (lost[node] != "" || !hasAgent) {
			delete(h.waits, a) // the node has no agent or is lost
			continue
		}
		releasing[node] = h.failed.nodes[node] == nil
	}
	released := make(chan string, len(releasing))
	open := 0
	for node, informed := range releasing {
		if informed {
			open++
			version := h.versions[node]
			go func() {
				// Ignore a timeout: a gateway that is alive but does not apply its assignment must not keep the
				// address indefinitely.
				_, _ = h.acknowledged(ctx, node, version)
				released <- node
			}()
		}
	}
	h.take(ctx)
	for ; open > 0; open-- {
		node := <-released
		for a, from := range h.waits {
			if from == node {
				delete(h.waits, a)
			}
		}
		h.take(ctx)
	}
	h.confirm(ctx)
}

// take assigns the addresses that no other node can still hold.
func (h *handover) take(ctx context.Context) {
	steps := sdn.Take(h.have, h.want, func(a netip.Addr) bool { return h.waits[a] != "" })
	for node := range h.unreadable {
		if !slices.ContainsFunc(steps, func(s sdn.Step) bool { return s.Node == node }) {
			steps = append(steps, sdn.Step{Node: node, Held: h.have.Of(node)})
		}
	}
	h.write(ctx, slices.DeleteFunc(steps, func(s sdn.Step) bool { return h.failed.nodes[s.Node] != nil }))
}

// write executes steps concurrently.
func (h *handover) write(ctx context.Context, steps []sdn.Step) {
	wanted := map[netip.Addr]bool{}
	for _, held := range h.want {
		for a := range held {
			wanted[a] = true
		}
	}
	var writing sync.WaitGroup
	for _, s := range steps {
		writing.Go(func() {
			version, err := h.annotate(ctx, s)
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, a := range s.Removed {
				if wanted[a] {
					h.waits[a] = s.Node
				}
			}
			if err != nil {
				h.failed.node(s, err)
				return
			}
			delete(h.unreadable, s.Node)
			delete(h.have, s.Node)
			for _, held := range s.Held {
				h.have.Add(s.Node, held)
			}
			if version != "" {
				h.versions[s.Node] = version
			}
			for _, a := range s.New {
				h.unconfirmed.Add(s.Node, h.have[s.Node][a])
			}
		})
	}
	writing.Wait()
}

// annotate writes a node's annotation and returns the new version of the object. A node that does not exist holds
// nothing.
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
	if err != nil && (!apierrors.IsNotFound(err) || len(s.New) > 0) {
		return "", fmt.Errorf("annotate node %s: %w", s.Node, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		version = n.ResourceVersion
		if revision.Newer(d.versions[s.Node], version) {
			return version, nil // another client has written meanwhile, and that version was already observed
		}
		d.versions[s.Node] = version
	}
	delete(d.unreadable, s.Node)
	delete(d.have, s.Node)
	for _, held := range s.Held {
		d.have.Add(s.Node, held)
	}
	return version, nil
}

// confirm checks whether nodes hold the addresses that they have not confirmed yet. Only at its desired node an address
// can fail.
func (h *handover) confirm(ctx context.Context) {
	var asking sync.WaitGroup
	for node, addrs := range h.unconfirmed {
		maps.DeleteFunc(addrs, func(a netip.Addr, _ world.Held) bool { return !h.have.Has(node, a) })
		if len(addrs) == 0 {
			delete(h.unconfirmed, node)
			continue
		}
		h.mu.Lock()
		wait := patience(h.late[node], time.Now())
		h.mu.Unlock()
		asking.Go(func() {
			h.Dataplane.mu.Lock()
			version := h.Dataplane.versions[node]
			h.Dataplane.mu.Unlock()
			asked, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			failed, err := h.acknowledged(asked, node, version)
			h.mu.Lock()
			defer h.mu.Unlock()
			if errors.Is(err, errUnconfirmed) && wait == handoverTime {
				h.late[node] = time.Now()
			}
			for a := range addrs {
				why := err
				if failed[a] != "" {
					why = errors.New(failed[a])
				}
				if why == nil {
					delete(addrs, a)
				} else if h.want.Has(node, a) {
					h.failed.addrs[a] = fmt.Errorf("address %s on node %s: %w", a, node, why)
				}
			}
		})
	}
	asking.Wait()
	maps.DeleteFunc(h.late, func(_ string, late time.Time) bool { return patience(late, time.Now()) == handoverTime })
}

// patience returns how long to wait for a node that was last late at a time, or never.
func patience(late, now time.Time) time.Duration {
	if now.Sub(late) < lateTime {
		return lateHandoverTime
	}
	return handoverTime
}

// acknowledged waits until a node has applied a version, unless the node is lost. It returns the errors by address.
func (h *handover) acknowledged(ctx context.Context, node, version string) (map[netip.Addr]string, error) {
	at, ok := h.agents[node]
	if !ok {
		return nil, errors.New("no agent runs there")
	}
	ctx, cancel := context.WithTimeout(ctx, handoverTime)
	defer cancel()
	type answer struct {
		failed map[netip.Addr]string
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		failed, err := h.prober.dial.acknowledges(ctx, at, version)
		if ctx.Err() != nil {
			return // the same error, whichever is first
		}
		answers <- answer{failed, err}
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if why := h.prober.losses()[node]; why != "" {
			return nil, errors.New(why)
		}
		select {
		case a := <-answers:
			return a.failed, a.err
		case <-ctx.Done(): // whatever the answer is, and however long it takes to read
			return nil, errUnconfirmed
		case <-look.C:
		}
	}
}
