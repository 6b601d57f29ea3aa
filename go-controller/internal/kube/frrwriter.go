// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// frrWritePause is the minimum time between two rounds of writes, and thus between two writes of an FRRConfiguration.
// frr-k8s itself waits for 3 s before it reloads FRR. It grows up to frrMaxPause while writes fail.
const frrWritePause, frrMaxPause = 3 * time.Second, time.Minute

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
	pause := frrWritePause
	Rounds(ctx, w.wake, func() (rest, again time.Duration) {
		if w.write(ctx) {
			pause = frrWritePause
			return frrWritePause, 0
		}
		again = pause
		pause = min(2*pause, frrMaxPause)
		return frrWritePause, again
	})
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
	there := map[string]*world.FRRConfiguration{}
	for _, c := range now.Configurations {
		there[c.Name] = c
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
	ok = w.apply(ctx, &changes, there, note) && ok
	if ctx.Err() == nil {
		w.facts.SetFRRRefused(refused)
	}
	return ok
}

// apply makes changes of objects that are there. It returns false if some of them have to wait: no route is taken away
// as long as the object that is to have it instead is not written. A deletion is never refused.
func (w *FRRWriter) apply(ctx context.Context, changes *frrk8s.Changes, there map[string]*world.FRRConfiguration,
	note func(peer, name string, err error)) bool {
	for _, name := range changes.Before {
		note(there[name].Peer, name, w.delete(ctx, name))
	}
	done, written := true, map[string]bool{}
	put := func(step frrk8s.Step, name string, o frrk8s.Object) {
		var err error
		if step != frrk8s.Keep {
			err = w.put(ctx, o, slices.Contains(changes.Before, name))
			written[name] = true
			note(o.Peer, name, err)
		}
		if step != frrk8s.Write || err != nil {
			changes.Left.Add(name)
			done = false
		}
	}
	for _, o := range changes.Put {
		step, next := changes.Next(&o, there[o.Name])
		put(step, o.Name, next)
	}
	for _, name := range changes.After {
		switch step, next := changes.Next(nil, there[name]); {
		case step == frrk8s.Delete:
			note(there[name].Peer, name, w.delete(ctx, name))
		case !written[name]:
			put(step, name, next)
		}
	}
	return done
}

func (w *FRRWriter) delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	have, ok := w.facts.FRRConfiguration(name)
	if !ok || !isOurs(have) {
		return nil
	}
	err := w.clients.Configurations.Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID}})
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
	switch {
	case !ok || deleted:
	case !isOurs(have):
		return fmt.Errorf("an object of others has this name, without the label %s: rename or delete it", frrapi.LabelPeer)
	default:
		have.DeepCopyInto(&next.ObjectMeta)
	}
	next.Labels, next.Annotations = withKey(next.Labels, frrapi.LabelPeer, frr.LabelValue(o.Peer)),
		withKey(next.Annotations, frrapi.AnnotationPeer, o.Peer)
	var err error
	if ok && !deleted {
		_, err = w.clients.Configurations.Update(ctx, next, metav1.UpdateOptions{})
	} else {
		_, err = w.clients.Configurations.Create(ctx, next, metav1.CreateOptions{})
	}
	return err
}

// isOurs reports whether an object may be changed and deleted.
func isOurs(c *frr.Configuration) bool {
	_, ours := c.Labels[frrapi.LabelPeer]
	return ours
}

func withKey(of map[string]string, key, value string) map[string]string {
	out := maps.Clone(of)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}
