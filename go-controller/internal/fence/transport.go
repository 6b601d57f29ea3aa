// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// WrapConfig returns a configuration for clients that write only during the term.
func (t *Term) WrapConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fencedTransport{next, t} })
	return config
}

// fencedTransport sends writes only during the term.
type fencedTransport struct {
	next http.RoundTripper
	term *Term
}

// RoundTrip sends a request unless it is a write outside of the term.
func (f *fencedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return f.next.RoundTrip(r)
	}
	if err := f.term.Check(); err != nil {
		return nil, fmt.Errorf("not sent: %w", err)
	}
	// Connecting may take longer than the term lasts.
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(f.term.over, func() { cancel(ErrExpired) })
	done := func() {
		stop()
		cancel(nil)
	}
	response, err := f.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if errors.Is(context.Cause(ctx), ErrExpired) {
			err = fmt.Errorf("request canceled: %w", ErrExpired)
		}
		done()
		return nil, err
	}
	response.Body = &body{response.Body, done}
	return response, nil
}

// body releases the resources of its request on Close.
type body struct {
	io.ReadCloser
	done func()
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
