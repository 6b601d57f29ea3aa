// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// handoverTime is how long a gateway has to give addresses up, or to take them.
	handoverTime = 2 * time.Second
	// lookEvery is the time between two looks whether a gateway that is waited for is lost.
	lookEvery = 50 * time.Millisecond
	// writeTimeout bounds one write.
	writeTimeout = 5 * time.Second
)

// handover leads the nodes from what they are told to what they shall be told.
type handover struct {
	*Dataplane
	have, want sdn.Table
	unreadable map[string]bool
	agents     map[string]netip.AddrPort
	// waits are the addresses that a node still may hold, with the node.
	waits  map[netip.Addr]string
	failed *failures
	// mu guards what writes come to: versions, and have and failed meanwhile.
	mu       sync.Mutex
	versions map[string]string
}

// settle tells the nodes what they shall hold, and waits for them.
func (d *Dataplane) settle(ctx context.Context) *failures {
	d.mu.Lock()
	h := &handover{
		Dataplane: d, have: d.have.Clone(), unreadable: d.unreadable, agents: d.agents,
		waits: map[netip.Addr]string{}, failed: newFailures(), versions: map[string]string{},
	}
	wish := sdn.Want(d.fabric, d.plans, h.have, func(world.Key) bool { return !d.complete })
	h.want, h.failed.keys = wish.Table, wish.Failed
	d.want, d.busy, d.unreadable = h.want, true, map[string]bool{}
	d.mu.Unlock()
	h.run(ctx)
	d.mu.Lock()
	for node := range h.failed.nodes {
		if h.unreadable[node] {
			d.unreadable[node] = true
		}
	}
	d.busy = false
	drift := len(h.failed.nodes) == 0 && d.strays()
	d.mu.Unlock()
	if drift {
		d.drifted()
	}
	return h.failed
}

func (h *handover) run(ctx context.Context) {
	h.write(ctx, sdn.Release(h.have, h.want))
	givers := map[string]bool{}
	lost := h.prober.losses()
	for a, node := range h.waits {
		if _, asked := h.agents[node]; h.failed.nodes[node] == nil && (lost[node] != "" || !asked) {
			delete(h.waits, a) // it can't be asked
			continue
		}
		givers[node] = h.failed.nodes[node] == nil
	}
	given := make(chan string, len(givers))
	open := 0
	for node, told := range givers {
		if told {
			open++
			version := h.versions[node]
			go func() {
				// In time or not: one that is alive and does not obey must not keep the address for ever.
				_, _ = h.obeyed(ctx, node, version)
				given <- node
			}()
		}
	}
	h.take(ctx)
	for ; open > 0; open-- {
		node := <-given
		for a, from := range h.waits {
			if from == node {
				delete(h.waits, a)
			}
		}
		h.take(ctx)
	}
	h.confirm(ctx)
}

// take tells nodes to take what no other may hold any more.
func (h *handover) take(ctx context.Context) {
	steps := sdn.Take(h.have, h.want, func(a netip.Addr) bool { return h.waits[a] != "" })
	for node := range h.unreadable {
		if !slices.ContainsFunc(steps, func(s sdn.Step) bool { return s.Node == node }) {
			steps = append(steps, sdn.Step{Node: node, Held: h.have.Of(node)})
		}
		delete(h.unreadable, node)
	}
	h.write(ctx, slices.DeleteFunc(steps, func(s sdn.Step) bool { return h.failed.nodes[s.Node] != nil }))
}

// write takes steps, all at the same time.
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
			version, err := h.tell(ctx, s)
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, a := range s.Gone {
				if wanted[a] {
					h.waits[a] = s.Node
				}
			}
			if err != nil {
				h.failed.node(s, err)
				return
			}
			delete(h.have, s.Node)
			for _, held := range s.Held {
				h.have.Add(s.Node, held)
			}
			if version != "" {
				h.versions[s.Node] = version
			}
			h.unconfirmed[s.Node] = slices.DeleteFunc(append(h.unconfirmed[s.Node], s.New...), func(a netip.Addr) bool {
				_, held := h.have[s.Node][a]
				return !held
			})
		})
	}
	writing.Wait()
}

// tell writes a node's annotation, and returns the version of the object then. A node that is gone
// holds nothing.
func (d *Dataplane) tell(ctx context.Context, s sdn.Step) (version string, err error) {
	var value *string
	if text := sdn.Format(s.Held); text != "" {
		value = &text
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{v1alpha1.AnnotationVIPs: value}}})
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
			return version, nil // somebody else wrote meanwhile, and that was seen already
		}
		d.versions[s.Node] = version
	}
	delete(d.have, s.Node)
	for _, held := range s.Held {
		d.have.Add(s.Node, held)
	}
	return version, nil
}

// confirm asks the nodes that were told to take addresses whether they have.
func (h *handover) confirm(ctx context.Context) {
	var asking sync.WaitGroup
	for node, addrs := range h.unconfirmed {
		if len(addrs) == 0 {
			delete(h.unconfirmed, node)
			continue
		}
		asking.Go(func() {
			h.Dataplane.mu.Lock()
			version := h.Dataplane.versions[node]
			h.Dataplane.mu.Unlock()
			failed, err := h.obeyed(ctx, node, version)
			h.mu.Lock()
			defer h.mu.Unlock()
			still := slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return err == nil && failed[a] == "" })
			for _, a := range still {
				why := err
				if why == nil {
					why = errors.New(failed[a])
				}
				h.failed.addrs[a] = fmt.Errorf("address %s on node %s: %w", a, node, why)
			}
			h.failed.still[node] = still
		})
	}
	asking.Wait()
	for node, still := range h.failed.still {
		h.unconfirmed[node] = still
	}
}

// obeyed waits until a node obeys a version, unless it is lost. It returns what it could not do.
func (h *handover) obeyed(ctx context.Context, node, version string) (map[netip.Addr]string, error) {
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
		failed, err := obeys(ctx, at, version)
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
		case <-look.C:
		}
	}
}
