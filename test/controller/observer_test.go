// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// observer records which Service had which address in which revisions. It watches the Services in etcd directly, and
// observes each revision in commit order, regardless of the state of the API server.
type observer struct {
	mu       sync.Mutex
	services map[string]*seen // by etcd key; existing Services only
	record   []*holding
	events   int
	err      error
}

// seen is the latest observed revision of a Service.
type seen struct {
	elder elder
	has   map[string]*holding
}

// elder identifies a Service and orders Services by age.
type elder struct {
	created int64 // seconds
	name    string
}

// holding is an address in the status of a Service. It lasts from revision from up to but not including revision until,
// which is 0 if the Service still has the address.
type holding struct {
	address     string
	by          elder
	from, until int64
}

func (h *holding) String() string {
	return fmt.Sprintf("%s by %s [%d,%d)", h.address, h.by.name, h.from, h.until)
}

// observe starts an observer. Call it before the Services are created.
func (c *cluster) observe(t *testing.T) *observer {
	t.Helper()
	o := &observer{services: map[string]*seen{}}
	socket := filepath.Join(c.plane.Dir(), "etcd.sock")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
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

// answer is a message of etcd's watch in the encoding of its JSON gateway.
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
		o.mu.Lock()
		if err != nil {
			if ctx.Err() == nil {
				o.err = fmt.Errorf("the watch ended: %w", err)
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
			o.take(string(e.KV.Key), s, e.KV.ModRevision)
		}
		o.mu.Unlock()
	}
}

// take records a revision of a Service. s is nil if the Service was deleted.
func (o *observer) take(key string, s *corev1.Service, revision int64) {
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
				h = &holding{address: i.IP, by: was.elder, from: revision}
				o.record = append(o.record, h)
			}
			has[i.IP] = h
		}
	} else {
		delete(o.services, key)
	}
	for address, h := range was.has {
		if has[address] == nil {
			h.until = revision
		}
	}
	was.has = has
}

// written returns the number of revisions of all Services.
func (o *observer) written() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events
}

// holders returns the number of Services that have an address.
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

// double is a period in which two Services had the same address.
type double struct{ older, younger *holding }

func (d double) String() string { return fmt.Sprintf("%v while %v", d.younger, d.older) }

// ended reports whether one of them has given up the address.
func (d double) ended() bool { return d.older.until != 0 || d.younger.until != 0 }

// history returns all holdings of the address, and all other holdings of its Service.
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

// doubles returns all duplicates. No test that uses it shares addresses.
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

// moves returns the Services that had more than one address over time, with the number of addresses.
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
