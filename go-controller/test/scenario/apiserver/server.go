// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Server is an API server in memory. Its methods may be called from any goroutine.
type Server struct {
	// ServiceSubnets are the networks of cluster IPs: IPv4, IPv6. They must not be changed after New.
	ServiceSubnets [2]netip.Prefix

	mu       sync.Mutex
	kinds    Kinds
	tables   map[schema.GroupResource]*table
	revision uint64
	// changed is closed when an object or the state of a connection has changed, and replaced.
	changed chan struct{}
	writes  []Write
	faults  faults
}

// table contains the objects of a kind.
type table struct {
	kind    *Kind
	objects map[string]map[string]any // by NAMESPACE/NAME
	events  []event
	// compacted is the newest revision whose events are no longer available.
	compacted uint64
	// created counts how often each name was created.
	created map[string]int
}

// event is a change of an object. before and after are nil if the object did not exist.
type event struct {
	revision      uint64
	before, after map[string]any
}

// Write is a request that was to change something.
type Write struct {
	Client, Verb, Resource, Subresource string
	// Object is NAMESPACE/NAME, or the name alone.
	Object string
	// Err is why it had no effect, nil if it had one or changed nothing.
	Err error
	// Changed reports whether it changed the object.
	Changed bool
	At      time.Time
}

// String describes a write in one line.
func (w Write) String() string {
	resource := w.Resource
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	text := fmt.Sprintf("%s: %s %s %s", w.Client, w.Verb, resource, w.Object)
	if w.Err != nil {
		text += ": " + w.Err.Error()
	}
	return text
}

// New returns a Server with the namespaces that each cluster has.
func New(kinds Kinds) (*Server, error) {
	s := &Server{kinds: slices.Clone(kinds), tables: map[schema.GroupResource]*table{}, changed: make(chan struct{}),
		ServiceSubnets: [2]netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}}
	for _, k := range s.kinds {
		s.tables[k.groupResource()] = newTable(k)
	}
	for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		namespace := map[string]any{"metadata": map[string]any{"name": name}}
		kind := s.kinds.byResource("", "v1", "namespaces")
		if _, err := s.create(&request{kind: kind, client: "cluster"}, namespace); err != nil {
			return nil, fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	s.writes = nil
	return s, nil
}

func newTable(k *Kind) *table {
	return &table{kind: k, objects: map[string]map[string]any{}, created: map[string]int{}}
}

// AddKinds adds kinds, as when a CustomResourceDefinition is created.
func (s *Server) AddKinds(kinds Kinds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, kinds...)
	for _, k := range kinds {
		s.tables[k.groupResource()] = newTable(k)
	}
}

// RemoveKinds removes kinds and their objects.
func (s *Server) RemoveKinds(kinds Kinds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range kinds {
		s.kinds = slices.DeleteFunc(s.kinds, func(have *Kind) bool { return have.groupResource() == k.groupResource() })
		t := s.tables[k.groupResource()]
		delete(s.tables, k.groupResource())
		for _, obj := range t.objects {
			s.revision++
			t.events = append(t.events, event{s.revision, obj, nil})
		}
	}
	s.wake()
}

// TakeWrites returns the write requests since the last call, in the order in which they took effect.
func (s *Server) TakeWrites() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := s.writes
	s.writes = nil
	return writes
}

// Compact makes watches that resume from before now fail: "too old resource version".
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		t.events, t.compacted = nil, s.revision
	}
}

// wake wakes whatever waits for changes. s.mu must be held.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// tableOf returns the table of a built-in resource of the core group.
func (s *Server) tableOf(resource string) *table {
	return s.tables[schema.GroupResource{Resource: resource}]
}

// put stores an object (nil to delete it) with a new resource version. s.mu must be held.
func (s *Server) put(t *table, key string, obj map[string]any) map[string]any {
	s.revision++
	before := t.objects[key]
	if obj == nil {
		delete(t.objects, key)
	} else {
		object(obj).SetResourceVersion(fmt.Sprint(s.revision))
		t.objects[key] = obj
	}
	t.events = append(t.events, event{s.revision, before, obj})
	s.wake()
	return obj
}

// object returns the accessor of an object's metadata.
func object(obj map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: obj}
}

func keyOf(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// namespaceExists reports whether a namespace exists. s.mu must be held.
func (s *Server) namespaceExists(name string) bool {
	return s.tableOf("namespaces").objects[name] != nil
}
