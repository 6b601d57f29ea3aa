// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// waiting is a transport that waits for a connection until its request is cancelled.
type waiting struct{}

func (waiting) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A write that waits for a connection ends with the term; a read does not.
func TestWaitingRequestEndsWithTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := NewTerm(10 * time.Second)
		defer term.Close()
		start := time.Now()
		term.Renew(start.Add(-3 * time.Second))
		transport := term.WrapConfig(&rest.Config{Host: "https://192.0.2.1"}).WrapTransport(waiting{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://192.0.2.1", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_, err = transport.RoundTrip(r) //nolint:bodyclose // there is none
		if took := time.Since(start); !errors.Is(err, ErrExpired) || took != 7*time.Second {
			t.Errorf("after %s: %v, want the end of the term after 7s", took, err)
		}
	})
}

// A term that is not renewed, is lost or is closed ends and does not begin again.
func TestTermEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(*Term){"lost": (*Term).Expire, "closed": (*Term).Close, "over": func(*Term) {
			<-time.After(time.Minute)
		}} {
			term := NewTerm(10 * time.Second)
			term.Expire() // has no effect before it begins
			if term.Context().Err() != nil || term.Check() == nil {
				t.Errorf("%s: before it begins: %v, %v", name, term.Context().Err(), term.Check())
			}
			term.Renew(time.Now())
			if err := term.Check(); err != nil {
				t.Errorf("%s: in the term: %v", name, err)
			}
			end(term)
			synctest.Wait()
			term.Renew(time.Now())
			if term.Context().Err() == nil || !errors.Is(term.Check(), ErrExpired) {
				t.Errorf("%s: the term continues", name)
			}
			term.Close()
		}
	})
}
