// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
)

const (
	// frrWritePause is the minimum time between two rounds of writes, and thus between two writes of an FRRConfiguration.
	// frr-k8s itself waits for 3 s before it reloads FRR. It grows up to frrMaxPause while writes fail.
	frrWritePause, frrMaxPause = 3 * time.Second, time.Minute
	// keepRounds is in how many rounds objects that are no longer desired are kept because others of their peer could not
	// be written: these may have the same prefixes.
	keepRounds = 3
)

// FRRWriter makes the FRRConfigurations of ours as desired.
type FRRWriter struct {
	clients *frr.Clients
	facts   *Facts
	wrote   Wrote
	wake    chan struct{}

	mu   sync.Mutex
	want []frrk8s.Object
	// known means that want has been decided with all objects of frr-k8s.
	known bool

	// failed is in how many rounds in a row a write for a peer failed. It is used by Run only.
	failed map[string]int
}

// NewFRRWriter returns a writer for the objects in facts, or nil if frr-k8s is not used.
func NewFRRWriter(ours *Clients, facts *Facts, wrote Wrote) *FRRWriter {
	if ours.FRR == nil {
		return nil
	}
	return &FRRWriter{clients: ours.FRR, facts: facts, wrote: wrote, wake: make(chan struct{}, 1),
		failed: map[string]int{}}
}

// Set replaces the desired objects. Unless known is set, nothing is written until the next call.
func (w *FRRWriter) Set(want []frrk8s.Object, known bool) {
	w.mu.Lock()
	w.want, w.known = want, known
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run writes until the context ends.
func (w *FRRWriter) Run(ctx context.Context) {
	pause := frrWritePause
	again := time.NewTimer(0)
	defer again.Stop()
	again.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-again.C:
		}
		if w.write(ctx) {
			pause = frrWritePause
		} else {
			again.Reset(pause)
			pause = min(2*pause, frrMaxPause)
		}
		rest.Reset(frrWritePause)
	}
}

// write performs one round of writes. It returns false if some failed.
func (w *FRRWriter) write(ctx context.Context) bool {
	w.mu.Lock()
	want, known := w.want, w.known
	w.mu.Unlock()
	w.facts.mu.Lock()
	now := w.facts.readFRR()
	w.facts.mu.Unlock()
	if !known || !now.Available() {
		return true
	}
	changes := frrk8s.Diff(want, now.Configurations)
	peers := map[string]string{}
	for _, c := range now.Configurations {
		peers[c.Name] = c.Peer
	}
	refused, ok := map[string]string{}, true
	note := func(peer, name string, err error) {
		if ctx.Err() != nil {
			return
		}
		w.wrote(frr.KindConfiguration, err)
		if err == nil {
			return
		}
		ok = false
		if !errors.IsConflict(err) && !errors.IsAlreadyExists(err) {
			if refused[peer] == "" {
				refused[peer] = "FRRConfiguration " + name + ": " + frr.Bounded(err.Error())
			}
			klog.ErrorS(err, "Failed to write FRRConfiguration, will retry", "name", name)
		}
	}
	for _, name := range changes.Before {
		note(peers[name], name, w.delete(ctx, name))
	}
	for _, o := range changes.Put {
		note(o.Peer, o.Name, w.put(ctx, o, slices.Contains(changes.Before, o.Name)))
	}
	for peer := range w.failed {
		if refused[peer] == "" {
			delete(w.failed, peer)
		}
	}
	for peer := range refused {
		w.failed[peer]++
	}
	for _, name := range changes.After {
		if peer := peers[name]; refused[peer] == "" || w.failed[peer] > keepRounds {
			note(peer, name, w.delete(ctx, name))
		}
	}
	if ctx.Err() == nil {
		w.facts.SetFRRRefused(refused)
	}
	return ok
}

func (w *FRRWriter) delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := w.clients.Configurations.Delete(ctx, name, metav1.DeleteOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

// put creates or updates an object. deleted means that it was deleted in this round.
func (w *FRRWriter) put(ctx context.Context, o frrk8s.Object, deleted bool) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	next := &frr.Configuration{Spec: o.Spec}
	next.Name = o.Name
	have, ok := w.facts.FRRConfiguration(o.Name)
	if ok && !deleted {
		next.ObjectMeta = *have.ObjectMeta.DeepCopy() //nolint:staticcheck // that of the metadata, not of the object
	}
	next.Labels, next.Annotations = withKey(next.Labels, frr.LabelPeer, labelValue(o.Peer)),
		withKey(next.Annotations, frr.AnnotationPeer, o.Peer)
	var err error
	if ok && !deleted {
		_, err = w.clients.Configurations.Update(ctx, next, metav1.UpdateOptions{})
	} else {
		_, err = w.clients.Configurations.Create(ctx, next, metav1.CreateOptions{})
	}
	return err
}

func withKey(of map[string]string, key, value string) map[string]string {
	out := maps.Clone(of)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// labelValue returns the name of a peer as far as a label can have it.
func labelValue(peer string) string {
	return strings.TrimRight(peer[:min(len(peer), validation.LabelValueMaxLength)], "-.")
}
