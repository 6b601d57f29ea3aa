// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// observer records who had which address when. It follows the Services in etcd itself: it
// sees each revision, in the order in which they were committed, whatever becomes of the
// API server meanwhile.
type observer struct {
	mu       sync.Mutex
	services map[string]*seen // by the key in etcd, those that exist
	record   []*holding
	events   int
	err      error
}

// seen is the newest revision of a Service.
type seen struct {
	elder elder
	has   map[string]*holding
}

// elder is what tells which of two Services is the older one.
type elder struct {
	created int64 // seconds
	name    string
}

// holding is an address that stood in the status of a Service, from one revision until
// before another; 0 while it still does.
type holding struct {
	address     string
	by          elder
	from, until int64
	began       time.Time
	ended       time.Time
}

func (h *holding) String() string {
	return fmt.Sprintf("%s by %s [%d,%d)", h.address, h.by.name, h.from, h.until)
}

// observe starts before the Services do.
func (c *cluster) observe(t *testing.T) *observer {
	t.Helper()
	o := &observer{services: map[string]*seen{}}
	socket := filepath.Join(c.plane.Dir(), "etcd.sock")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	prefix := "/registry/services/specs/" + ns + "/"
	body, err := json.Marshal(map[string]any{"create_request": map[string]any{
		"key": []byte(prefix), "range_end": []byte(strings.TrimSuffix(prefix, "/") + "0"), // '0' follows '/'
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/watch", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	stream := json.NewDecoder(response.Body)
	var first answer
	if err := stream.Decode(&first); err != nil || !first.Result.Created {
		t.Fatalf("etcd doesn't let its keys be watched: %+v, %v", first, err)
	}
	var following sync.WaitGroup
	following.Go(func() { o.follow(ctx, stream) })
	t.Cleanup(func() {
		cancel()
		following.Wait()
		if err := errors.Join(o.err, response.Body.Close()); err != nil {
			t.Errorf("observer: %v", err)
		}
	})
	return o
}

// answer is a message of etcd's watch as its JSON gateway writes it.
type answer struct {
	Result struct {
		Created bool
		Events  []struct {
			Type string // empty for PUT
			KV   struct {
				Key, Value  []byte
				ModRevision int64 `json:"mod_revision,string"`
			}
		}
	}
}

func (o *observer) follow(ctx context.Context, stream *json.Decoder) {
	for {
		var a answer
		err := stream.Decode(&a)
		now := time.Now()
		o.mu.Lock()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				o.err = err
			}
			o.mu.Unlock()
			return
		}
		for _, e := range a.Result.Events {
			var s *corev1.Service
			if e.Type != "DELETE" {
				object, _, err := scheme.Codecs.UniversalDeserializer().Decode(e.KV.Value, nil, nil)
				if err != nil {
					o.err = fmt.Errorf("read %s: %w", e.KV.Key, err)
					continue
				}
				s = object.(*corev1.Service)
			}
			o.take(string(e.KV.Key), s, e.KV.ModRevision, now)
		}
		o.mu.Unlock()
	}
}

// take notes a revision of a Service, nil for its end.
func (o *observer) take(key string, s *corev1.Service, revision int64, now time.Time) {
	o.events++
	was := o.services[key]
	if was == nil {
		was = &seen{has: map[string]*holding{}}
		o.services[key] = was
	}
	has := map[string]*holding{}
	if s != nil {
		was.elder = elder{s.CreationTimestamp.Unix(), s.Name}
		for _, i := range s.Status.LoadBalancer.Ingress {
			h := was.has[i.IP]
			if h == nil {
				h = &holding{address: i.IP, by: was.elder, from: revision, began: now}
				o.record = append(o.record, h)
			}
			has[i.IP] = h
		}
	} else {
		delete(o.services, key)
	}
	for address, h := range was.has {
		if has[address] == nil {
			h.until, h.ended = revision, now
		}
	}
	was.has = has
}

// written counts the revisions of all Services.
func (o *observer) written() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events
}

// holders counts the Services that have an address now.
func (o *observer) holders() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, s := range o.services {
		if len(s.has) > 0 {
			n++
		}
	}
	return n
}

// double is a time in which two Services had one address.
type double struct{ older, younger *holding }

func (d double) String() string { return fmt.Sprintf("%v while %v", d.younger, d.older) }

// lasted is how long both had it, for ever if they still do.
func (d double) lasted() time.Duration {
	if d.older.until == 0 && d.younger.until == 0 {
		return 1<<63 - 1
	}
	end := d.older.ended
	if d.older.until == 0 || d.younger.until != 0 && d.younger.until < d.older.until {
		end = d.younger.ended
	}
	begin := d.older.began
	if d.younger.began.After(begin) {
		begin = d.younger.began
	}
	return end.Sub(begin)
}

// history lists who had an address, and what else the one had who holds it.
func (o *observer) history(of *holding) []*holding {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []*holding
	for _, h := range o.record {
		if h.address == of.address || h.by == of.by {
			list = append(list, h)
		}
	}
	return list
}

// doubles lists all of them. Nobody shares addresses here.
func (o *observer) doubles() []double {
	o.mu.Lock()
	defer o.mu.Unlock()
	byAddress := map[string][]*holding{}
	for _, h := range o.record {
		byAddress[h.address] = append(byAddress[h.address], h)
	}
	var out []double
	for _, address := range slices.Sorted(maps.Keys(byAddress)) {
		list := byAddress[address]
		for i, a := range list {
			for _, b := range list[i+1:] {
				if a.by == b.by || a.until != 0 && a.until <= b.from || b.until != 0 && b.until <= a.from {
					continue
				}
				d := double{a, b}
				if cmp.Or(cmp.Compare(a.by.created, b.by.created), cmp.Compare(a.by.name, b.by.name)) > 0 {
					d = double{b, a}
				}
				out = append(out, d)
			}
		}
	}
	return out
}

// moves lists the Services that had more than one address, one after the other.
func (o *observer) moves() map[elder]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := map[elder]int{}
	for _, h := range o.record {
		n[h.by]++
	}
	maps.DeleteFunc(n, func(_ elder, n int) bool { return n < 2 })
	return n
}
