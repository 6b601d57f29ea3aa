// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// unreadAfter is how long a kind must have been unread to be reported. client-go waits for up to a minute between two
	// attempts (30 s and as much jitter) and a watch of a quiet kind may take a minute to be answered through a proxy, so
	// a kind that can be read again is read before this time ends, and so it is after an API server has restarted.
	unreadAfter = 2 * time.Minute
	// unreadLogInterval is the interval between two checks of what has to be logged.
	unreadLogInterval = 10 * time.Second
	// interruption is how long a kind must have been unread for the API server to count as back.
	interruption = 10 * time.Second
)

// attempts are the requests that read one kind: lists, watches, and the discovery of the kind.
type attempts struct {
	mu sync.Mutex
	// since is when the first request began of those since the last success, the zero time if there is none.
	since time.Time
	// back is when the first request succeeded after an interruption, the zero time if there was none.
	back time.Time
	// refused is the last error since the last success, empty if there is none.
	refused string
}

// begin records that a request is sent.
func (a *attempts) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
}

// end records the result of a request and returns it. Without an error, the kind has been read.
func (a *attempts) end(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		if !a.since.IsZero() && time.Since(a.since) >= interruption {
			a.back = time.Now()
		}
		a.since, a.refused = time.Time{}, ""
	} else {
		a.refused = err.Error()
	}
	return err
}

// lastError returns the last error since the last success, empty if there is none.
func (a *attempts) lastError() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}

// unread returns why the kind has been unread for unreadAfter, empty if it has not.
func (a *attempts) unread() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() || time.Since(a.since) < unreadAfter {
		return ""
	}
	return cmp.Or(a.refused, "the API server does not answer")
}

// isSteady reports whether the kind has been read for unreadAfter without an interruption.
func (a *attempts) isSteady() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since.IsZero() && time.Since(a.back) >= unreadAfter
}

// initialWatch is a watch that begins with the objects that exist. Only their end shows that the kind has been read: an
// object that can't be decoded ends such a watch with an error.
type initialWatch struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	stop    func()
}

func (a *attempts) observe(w watch.Interface) watch.Interface {
	o := &initialWatch{Interface: w, events: make(chan watch.Event), stopped: make(chan struct{})}
	o.stop = sync.OnceFunc(func() { close(o.stopped) })
	go o.forward(a)
	return o
}

func (w *initialWatch) forward(a *attempts) {
	defer close(w.events)
	for e := range w.Interface.ResultChan() {
		switch {
		case e.Type == watch.Error:
			_ = a.end(apierrors.FromObject(e.Object)) // client-go returns it, too
		case endsInitialObjects(e):
			_ = a.end(nil)
		}
		select {
		case w.events <- e:
		case <-w.stopped:
			return
		}
	}
}

// ResultChan implements watch.Interface.
func (w *initialWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *initialWatch) Stop() {
	w.stop()
	w.Interface.Stop()
}

func endsInitialObjects(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	o, err := meta.Accessor(e.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// UnreadKinds returns which of some informers, by resource, have been unable to read their kind for two minutes, and
// why. Decisions rest on what they read before.
func UnreadKinds(informers map[string]cache.Controller) map[string]string {
	unread := map[string]string{}
	for resource, c := range informers {
		if i, ok := c.(*informer); ok {
			if why := i.attempts.unread(); why != "" {
				unread[resource] = why
			}
		}
	}
	return unread
}

// UnreadKinds returns the kinds that have been unread for two minutes, by resource, and why.
func (w *Watch) UnreadKinds() map[string]string {
	unread := UnreadKinds(w.needed)
	for _, d := range slices.Concat(w.openShift, w.optionalKinds()) {
		if why := d.unread(); why != "" {
			unread[cmp.Or(d.reads, d.String())] = why
		}
	}
	return unread
}

// UnreadAlone is UnreadKinds if another kind has been read for two minutes, and nil otherwise. When the API server is
// back after an outage, each kind is read again at another time within a minute.
func (w *Watch) UnreadAlone() map[string]string {
	for _, c := range w.needed {
		if i, ok := c.(*informer); ok && i.attempts.isSteady() {
			return w.UnreadKinds()
		}
	}
	return nil
}

// LogUnreadKinds logs when kinds begin and cease to be unread, until ctx ends.
func LogUnreadKinds(ctx context.Context, unread func() map[string]string) {
	tick := time.NewTicker(unreadLogInterval)
	defer tick.Stop()
	var logged map[string]string
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := unread()
		for _, resource := range slices.Sorted(maps.Keys(now)) {
			if logged[resource] == "" {
				klog.ErrorS(errors.New(now[resource]), "Can't read a kind; decisions rest on what was read before",
					"resource", resource)
			}
		}
		for _, resource := range slices.Sorted(maps.Keys(logged)) {
			if now[resource] == "" {
				klog.InfoS("Can read a kind again", "resource", resource)
			}
		}
		logged = now
	}
}

// unreadCollector exports the kinds that parts of the process can't read.
type unreadCollector struct {
	desc *prometheus.Desc
	mu   sync.Mutex
	of   []func() map[string]string
}

// RegisterUnreadKinds registers the metric of the kinds that a part of the process can't read. Parts of one process
// share the metric.
func RegisterUnreadKinds(r prometheus.Registerer, unread func() map[string]string) error {
	c := &unreadCollector{of: []func() map[string]string{unread}, desc: prometheus.NewDesc("ovnkube_slb_unread_kinds",
		"Kinds that the process has been unable to read for two minutes, so that it decides from what it read before: 1. "+
			"Other kinds have no series.", []string{"resource"}, nil)}
	err := r.Register(c)
	var registered prometheus.AlreadyRegisteredError
	if errors.As(err, &registered) {
		if shared, ok := registered.ExistingCollector.(*unreadCollector); ok {
			shared.mu.Lock()
			defer shared.mu.Unlock()
			shared.of = append(shared.of, unread)
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c *unreadCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector.
func (c *unreadCollector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	of := slices.Clone(c.of)
	c.mu.Unlock()
	all := map[string]string{}
	for _, unread := range of {
		maps.Copy(all, unread())
	}
	for resource := range all {
		metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, resource)
	}
}
