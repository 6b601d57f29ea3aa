// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	clienttesting "k8s.io/client-go/testing"
)

// apiServer counts reviews. The token "prometheus" is valid and may get /metrics. The token "tenant" is valid and may
// get nothing.
type apiServer struct {
	reviews atomic.Int64
	err     atomic.Pointer[error]
}

func (a *apiServer) access() *access {
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		token := review.Spec.Token
		review.Status.Authenticated = token == "prometheus" || token == "tenant"
		review.Status.User.Username = token
		return true, review, a.count()
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object,
		error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		wanted := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && wanted.Path == "/metrics" && wanted.Verb == "get"
		return true, review, a.count()
	})
	return newAccess(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews())
}

func (a *apiServer) count() error {
	a.reviews.Add(1)
	if err := a.err.Load(); err != nil {
		return *err
	}
	return nil
}

// get sends a request, and returns its status and whether it reached the protected handler.
func get(a *access, client, token, path string) (code int, served bool) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = client
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	a.protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true })).ServeHTTP(w, r)
	return w.Code, served
}

const scraper, attacker = "192.0.2.1:1000", "192.0.2.66:2000"

// TestAccessLimitsReviews checks that a client that sends many tokens or paths causes a bounded number of reviews, and
// does not lock out other clients.
func TestAccessLimitsReviews(t *testing.T) {
	for name, request := range map[string]func(i int) (token, path string){
		"forged tokens":                      func(i int) (string, string) { return fmt.Sprint("forged-", i), "/metrics" },
		"a valid token and many paths":       func(i int) (string, string) { return "tenant", fmt.Sprint("/", i) },
		"a valid token that may get nothing": func(int) (string, string) { return "tenant", "/metrics" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &apiServer{}
				a := server.access()
				if code, served := get(a, scraper, "prometheus", "/metrics"); code != http.StatusOK || !served {
					t.Fatalf("status %d, served %v", code, served)
				}
				before := server.reviews.Load()
				const seconds, rate = 90, 100
				for i := range seconds * rate {
					token, path := request(i)
					if code, served := get(a, attacker, token, path); code < 400 || served {
						t.Fatalf("status %d, served %v", code, served)
					}
					<-time.After(time.Second / rate)
				}
				withstood(t, server, a, before+clientBurst+seconds*clientRate+1)
			})
		})
	}
}

// withstood checks that server received at most most reviews, and that a client that was allowed before is served.
func withstood(t *testing.T, server *apiServer, a *access, most int64) {
	t.Helper()
	if n := server.reviews.Load(); n > most {
		t.Errorf("%d reviews, want at most %d", n, most)
	}
	if code, served := get(a, scraper, "prometheus", "/metrics"); code != http.StatusOK || !served {
		t.Errorf("a known client gets %d, served %v", code, served)
	}
}

// TestAccessLimitsReviewsOfManyClients checks that requests from many addresses are limited in total, and that a client
// that was allowed before is exempt.
func TestAccessLimitsReviewsOfManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{}
		a := server.access()
		get(a, scraper, "prometheus", "/metrics")
		before := server.reviews.Load()
		const seconds = 70 // longer than allowedFor
		for i := range seconds * 100 {
			get(a, fmt.Sprintf("10.0.%d.%d:1", i/250, i%250), fmt.Sprint("forged-", i), "/metrics")
			<-time.After(10 * time.Millisecond)
		}
		withstood(t, server, a, before+totalBurst+seconds*totalRate+1)
	})
}

// TestAccessWithoutAPIServer checks that nothing is served while the API server is down, not even to a client whose
// cached verdict has expired.
func TestAccessWithoutAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{}
		a := server.access()
		get(a, scraper, "prometheus", "/metrics")
		down := errors.New("connection refused")
		server.err.Store(&down)
		if code, served := get(a, scraper, "prometheus", "/metrics"); code != http.StatusOK || !served {
			t.Errorf("while the verdict counts: status %d, served %v", code, served)
		}
		<-time.After(allowedFor + time.Millisecond)
		before := server.reviews.Load()
		for range 100 {
			if code, served := get(a, scraper, "prometheus", "/metrics"); code != http.StatusServiceUnavailable || served {
				t.Fatalf("after it: status %d, served %v", code, served)
			}
		}
		if n := server.reviews.Load() - before; n > 1 {
			t.Errorf("%d reviews at once of an API server that is down", n)
		}
		server.err.Store(nil)
		<-time.After(failedFor + time.Millisecond)
		if code, served := get(a, scraper, "prometheus", "/metrics"); code != http.StatusOK || !served {
			t.Errorf("when it is back: status %d, served %v", code, served)
		}
	})
}

// TestAccessSharesReviews checks that concurrent requests with the same token share reviews.
func TestAccessSharesReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{}
		a := server.access()
		inner := a.tokens
		a.tokens = slow{inner}
		for range 50 {
			go get(a, scraper, "prometheus", "/metrics")
		}
		synctest.Wait()
		<-time.After(time.Second)
		synctest.Wait()
		if n := server.reviews.Load(); n != 2 {
			t.Errorf("%d reviews, want one of the token and one of the access", n)
		}
	})
}

type slow struct {
	authenticationclient.TokenReviewInterface
}

func (s slow) Create(ctx context.Context, review *authenticationv1.TokenReview,
	o metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	<-time.After(time.Second / 2)
	return s.TokenReviewInterface.Create(ctx, review, o)
}

func TestClientOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8::1:2:3:4]:80": "2001:db8::/64",
		"[fe80::1%eth0]:80": "fe80::/64",
	} {
		if got := clientOf(remote); got != want {
			t.Errorf("client of %s: %q, want %q", remote, got, want)
		}
	}
}
