// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is the body of the response to a watch: one JSON object per event. It reads the events of its table on demand,
// so no goroutine belongs to it.
type stream struct {
	ctx    context.Context
	server *Server
	client *Client
	query  *request
	table  *table
	closed chan struct{}
	once   sync.Once

	// epoch is the server's when the watch began.
	epoch int

	// Used by Read only.
	buffer bytes.Buffer
	// seen is the revision up to which events have been delivered.
	seen uint64
}

// watch returns the stream of changes that a request is for. s.mu must be held.
func (s *Server) watch(ctx context.Context, c *Client, q *request) (*stream, error) {
	w := &stream{ctx: ctx, server: s, client: c, query: q, table: s.tables[q.kind.groupResource()],
		closed: make(chan struct{}), epoch: s.faults.watchEpoch}
	from := q.options.ResourceVersion
	initial := q.options.SendInitialEvents != nil && *q.options.SendInitialEvents
	if initial || from == "" || from == "0" {
		w.seen = s.revision
		for _, key := range slices.Sorted(maps.Keys(w.table.objects)) {
			if obj := w.table.objects[key]; q.selects(obj) {
				w.write(watch.Added, obj)
			}
		}
		if initial {
			w.write(watch.Bookmark, w.bookmark(true))
		}
		return w, nil
	}
	var err error
	if w.seen, err = strconv.ParseUint(from, 10, 64); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: %q is no version", from))
	}
	if w.seen < w.table.compacted || w.seen > s.revision {
		status := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.seen,
			w.table.compacted)).Status()
		status.Kind, status.APIVersion = "Status", "v1"
		w.write(watch.Error, &status)
		w.seen = s.revision
	}
	return w, nil
}

// bookmark returns the object of a bookmark; the one at the end of the initial events has an annotation.
func (st *stream) bookmark(initialEventsEnd bool) map[string]any {
	metadata := map[string]any{"resourceVersion": fmt.Sprint(st.seen)}
	if initialEventsEnd {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	return map[string]any{"apiVersion": st.query.kind.GroupVersion().String(), "kind": st.query.kind.Kind,
		"metadata": metadata}
}

func (st *stream) write(kind watch.EventType, obj any) {
	data, err := json.Marshal(map[string]any{"type": kind, "object": obj})
	if err != nil {
		panic(fmt.Sprintf("stored object: %v", err)) // It was decoded from JSON.
	}
	st.buffer.Write(append(data, '\n'))
}

// Read implements io.Reader.
func (st *stream) Read(p []byte) (int, error) {
	for st.buffer.Len() == 0 {
		changed, err := st.next()
		if err != nil {
			return 0, err
		}
		if st.buffer.Len() > 0 {
			break
		}
		select {
		case <-changed:
		case <-st.closed:
			return 0, io.EOF
		case <-st.ctx.Done():
			return 0, st.ctx.Err()
		}
	}
	return st.buffer.Read(p)
}

// next appends the new events to the buffer. The returned channel is closed when there may be more.
func (st *stream) next() (<-chan struct{}, error) {
	s := st.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.refuses(st.client) || s.faults.watchEpoch != st.epoch {
		return nil, io.ErrUnexpectedEOF
	}
	i, _ := slices.BinarySearchFunc(st.table.events, st.seen+1, func(e event, revision uint64) int {
		return int(e.revision) - int(revision) //nolint:gosec // revisions are small
	})
	for _, e := range st.table.events[i:] {
		st.seen = e.revision
		switch was, is := st.query.selects(e.before), st.query.selects(e.after); {
		case was && is:
			st.write(watch.Modified, e.after)
		case is:
			st.write(watch.Added, e.after)
		case was:
			gone := object(e.before).DeepCopy()
			gone.SetResourceVersion(fmt.Sprint(e.revision))
			st.write(watch.Deleted, gone.Object)
		}
	}
	return s.changed, nil
}

// Close implements io.Closer.
func (st *stream) Close() error {
	st.once.Do(func() { close(st.closed) })
	return nil
}
