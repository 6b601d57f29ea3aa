// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

// writeTime is how long a write of a process takes. Without it, writes that follow each other would contain the same
// time, if the clock is virtual.
const writeTime = time.Millisecond

// Client is the transport of one process. It implements http.RoundTripper.
type Client struct {
	server *Server
	name   string
	user   bool
	cut    bool
}

// Client returns a transport for a process with a name that [Write] contains.
func (s *Server) Client(name string) *Client { return &Client{server: s, name: name} }

// User returns a transport for a person, whose requests no fault affects and are not among the writes.
func (s *Server) User() *Client { return &Client{server: s, name: "user", user: true} }

// Config returns a configuration for client-go.
func (c *Client) Config() *rest.Config {
	return &rest.Config{Host: "http://api.test", Transport: c, QPS: -1, UserAgent: c.name,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON,
			AcceptContentTypes: runtime.ContentTypeJSON}}
}

// Cut ends all connections of the process, for good if it was killed, and refuses new ones until Restore.
func (c *Client) Cut() { c.setCut(true) }

// Restore lets the process connect again.
func (c *Client) Restore() { c.setCut(false) }

func (c *Client) setCut(cut bool) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.cut = cut
	c.server.wake()
}

// RoundTrip implements http.RoundTripper.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() {
		if r.Body != nil {
			_ = r.Body.Close() // It is in memory.
		}
	}()
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
	}
	if err := c.connected(); err != nil {
		return nil, err
	}
	result, code, err := c.serve(r, body)
	if err != nil && !errors.As(err, new(apierrors.APIStatus)) {
		return nil, err
	}
	// A client whose connection ended does not get the response.
	if err := c.connected(); err != nil {
		return nil, err
	}
	if w, watches := result.(*stream); watches {
		return response(r, http.StatusOK, w), nil
	}
	if err != nil {
		var status apierrors.APIStatus
		errors.As(err, &status)
		s := status.Status()
		s.Kind, s.APIVersion = "Status", "v1"
		result, code = &s, int(s.Code)
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encode the response: %w", err)
	}
	return response(r, code, io.NopCloser(bytes.NewReader(data))), nil
}

func response(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: body, ContentLength: -1, Request: r}
}

// connected returns an error if the process does not reach the server.
func (c *Client) connected() error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.server.faults.refuses(c) {
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return nil
}

// serve performs a request and returns what is sent in response.
func (c *Client) serve(r *http.Request, body []byte) (result any, code int, err error) {
	s := c.server
	s.mu.Lock()
	q, err := s.parse(r)
	if err != nil {
		defer s.mu.Unlock()
		if found := s.discover(r.URL.Path); found != nil && r.Method == http.MethodGet {
			return found, http.StatusOK, nil
		}
		return nil, 0, err
	}
	q.client = c.name
	if r.Method == http.MethodGet {
		defer s.mu.Unlock()
		switch {
		case s.faults.forbidden[q.kind.Resource] && !c.user:
			err = apierrors.NewForbidden(q.kind.GroupVersion().WithResource(q.kind.Resource).GroupResource(), q.name,
				errors.New("no role allows to read it"))
		case q.options.Watch:
			result, err = s.watch(r.Context(), c, q)
		case q.name != "":
			result, err = s.get(q)
		default:
			result = s.list(q)
		}
		return result, http.StatusOK, err
	}
	delay := s.faults.delays[q.kind.Resource] + writeTime
	s.mu.Unlock()
	if !c.user {
		if err := c.wait(r.Context(), delay); err != nil {
			return nil, 0, err
		}
	}
	return c.serveWrite(r, q, body)
}

// wait waits before a request takes effect. A process that was killed or disconnected meanwhile did not send it.
func (c *Client) wait(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.connected()
}

// serveWrite performs a request that writes.
func (c *Client) serveWrite(r *http.Request, q *request, body []byte) (any, int, error) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	code, changed, verb := http.StatusOK, true, strings.ToLower(r.Method)
	var result map[string]any
	var err error
	switch r.Method {
	case http.MethodPost:
		verb, code = "create", http.StatusCreated
		var obj map[string]any
		if obj, err = decode(body); err == nil {
			result, err = c.server.create(q, obj)
		}
	case http.MethodPut, http.MethodPatch:
		if r.Method == http.MethodPut {
			verb = "update"
		}
		if !c.user {
			c.server.precede(q)
		}
		result, changed, err = c.server.update(q, func(old map[string]any) (map[string]any, error) {
			if r.Method == http.MethodPut {
				return decode(body)
			}
			return patched(q.kind, old, body, r.Header.Get("Content-Type"))
		})
	case http.MethodDelete:
		var options metav1.DeleteOptions
		if len(body) > 0 {
			err = json.Unmarshal(body, &options)
		}
		switch {
		case err != nil:
			err = apierrors.NewBadRequest(err.Error())
		case q.name == "":
			result, err = c.server.removeAll(q, &options)
		default:
			result, err = c.server.remove(q, &options)
		}
	default:
		return nil, 0, apierrors.NewMethodNotSupported(q.kind.groupResource(), verb)
	}
	if !c.user {
		c.server.writes = append(c.server.writes, Write{Client: c.name, Verb: verb, Resource: q.kind.Resource,
			Subresource: q.subresource, Object: keyOf(q.namespace, q.name), Err: err, Changed: err == nil && changed,
			At: time.Now()})
	}
	return result, code, err
}

// decode decodes an object. Integers stay integers.
func decode(data []byte) (map[string]any, error) {
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, nil
}
