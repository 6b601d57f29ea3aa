// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
)

// frrWritePause is the minimum time between two rounds of writes, and thus between two writes of an FRRConfiguration.
// frr-k8s itself waits for 3 s before it reloads FRR. It grows up to frrMaxPause while writes fail.
const frrWritePause, frrMaxPause = 3 * time.Second, time.Minute

// webhookDenied is part of each refusal by a webhook (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
const webhookDenied = "denied the request"

// FRRWriter makes the FRRConfigurations of ours as desired.
type FRRWriter struct {
	clients *FRRClients
	facts   *Facts
	wrote   Wrote
	wake    chan struct{}

	mu   sync.Mutex
	want []frrk8s.Object
	// known means that want has been decided with all objects of frr-k8s.
	known bool
}

// NewFRRWriter returns a writer for the objects in facts, or nil if frr-k8s is not used.
func NewFRRWriter(ours *Clients, facts *Facts, wrote Wrote) *FRRWriter {
	if ours.FRR == nil {
		return nil
	}
	return &FRRWriter{clients: ours.FRR, facts: facts, wrote: wrote, wake: make(chan struct{}, 1)}
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
	writeRounds(ctx, w.wake, w.write, frrWritePause, frrWritePause, frrMaxPause)
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
	changes := frrk8s.Diff(want, now)
	r := &frrRound{FRRWriter: w, ctx: ctx, peers: map[string]string{}, deleted: map[string]bool{},
		refused: map[string]string{}}
	for _, c := range now.Configurations {
		r.peers[c.Name] = c.Peer
	}
	done := changes.Apply(r)
	if ctx.Err() == nil {
		w.facts.SetFRRRefused(r.refused)
	}
	return done
}

// frrRound is one round of writes.
type frrRound struct {
	*FRRWriter
	ctx context.Context
	// peers are those of the objects that are there, deleted those that were in this round, and refused why objects of a
	// peer could not be written.
	peers   map[string]string
	deleted map[string]bool
	refused map[string]string
}

// record reports the result of a write.
func (r *frrRound) record(peer, name string, err error) error {
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	r.wrote(frr.KindConfiguration, err)
	if err != nil && !errors.IsConflict(err) && !errors.IsAlreadyExists(err) {
		if r.refused[peer] == "" {
			r.refused[peer] = "FRRConfiguration " + name + ": " + frr.Bounded(err.Error())
		}
		klog.ErrorS(err, "Failed to write FRRConfiguration, will retry", "name", name)
	}
	return err
}

// Answers implements frrk8s.Writer: it writes an object as it is, without effect. That frr-k8s' webhook refuses it is
// an answer, too: what the object contradicts may be the reason for which it has to yield.
func (r *frrRound) Answers(name string) error {
	have, ok := r.facts.FRRConfiguration(name)
	if !ok || !frr.IsOurs(have) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, sendTimeout)
	defer cancel()
	_, err := r.clients.Configurations.Update(ctx, have, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && strings.Contains(err.Error(), webhookDenied) {
		return nil
	}
	return r.record(r.peers[name], name, err)
}

// Delete implements frrk8s.Writer.
func (r *frrRound) Delete(name string) error {
	r.deleted[name] = true
	return r.record(r.peers[name], name, r.remove(name))
}

func (r *frrRound) remove(name string) error {
	ctx, cancel := context.WithTimeout(r.ctx, sendTimeout)
	defer cancel()
	have, ok := r.facts.FRRConfiguration(name)
	if !ok || !frr.IsOurs(have) {
		return nil
	}
	err := r.clients.Configurations.Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID}})
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}

// Put implements frrk8s.Writer.
func (r *frrRound) Put(o frrk8s.Object) error { return r.record(o.Peer, o.Name, r.put(&o)) }

func (r *frrRound) put(o *frrk8s.Object) error {
	ctx, cancel := context.WithTimeout(r.ctx, sendTimeout)
	defer cancel()
	next := &frr.Configuration{Spec: o.Spec}
	next.Name = o.Name
	have, ok := r.facts.FRRConfiguration(o.Name)
	ok = ok && !r.deleted[o.Name]
	if ok && !frr.IsOurs(have) {
		return fmt.Errorf("an object of others has this name, without the label %s: rename or delete it", frrapi.LabelPeer)
	} else if ok {
		have.DeepCopyInto(&next.ObjectMeta)
	}
	next.Labels, next.Annotations = withKey(next.Labels, frrapi.LabelPeer, frr.LabelValue(o.Peer)),
		withKey(next.Annotations, frrapi.AnnotationPeer, o.Peer)
	var err error
	if ok {
		_, err = r.clients.Configurations.Update(ctx, next, metav1.UpdateOptions{})
	} else {
		_, err = r.clients.Configurations.Create(ctx, next, metav1.CreateOptions{})
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
