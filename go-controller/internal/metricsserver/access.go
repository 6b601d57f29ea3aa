// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"

	"golang.org/x/sync/singleflight"
)

const (
	// reviewTimeout is the time limit for one review. A request needs at most two, which fit into Prometheus' default
	// scrape timeout of 10 s.
	reviewTimeout = 3 * time.Second
	// allowedFor and deniedFor are how long a verdict is cached. failedFor is the delay after a failed review.
	allowedFor = time.Minute
	deniedFor  = 10 * time.Second
	failedFor  = time.Second
	// knownFor is how long a client that was allowed is exempt from the limits.
	knownFor = time.Hour

	maxKnown  = 256
	maxDenied = 1024
)

var errLimited = errors.New("too many reviews")

// access authorizes requests by reviews of the API server.
type access struct {
	tokens  authenticationclient.TokenReviewInterface
	subject authorizationclient.SubjectAccessReviewInterface
	limits  *limits
	flights singleflight.Group
	// known caches verdicts that allow, including expired ones. refused caches verdicts that deny, and failures. An
	// unauthorized client can evict only entries of refused.
	known, refused *cache.LRUExpireCache
}

// verdict is the outcome of one review.
type verdict struct {
	allowed bool
	user    authenticationv1.UserInfo // from a TokenReview
	until   time.Time                 // when an allowed verdict must be reviewed again
	err     error
}

func newAccess(tokens authenticationclient.TokenReviewInterface,
	subject authorizationclient.SubjectAccessReviewInterface) *access {
	return &access{
		tokens: tokens, subject: subject, limits: newLimits(),
		known: cache.NewLRUExpireCache(maxKnown), refused: cache.NewLRUExpireCache(maxDenied),
	}
}

// protect passes requests that the API server allows to next.
func (a *access) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, message := a.check(r)
		switch code {
		case http.StatusOK:
			trust(r)
			next.ServeHTTP(w, r)
			return
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			w.Header().Set("Retry-After", "1")
		}
		// Connections are limited, so close that of a refused client.
		w.Header().Set("Connection", "close")
		http.Error(w, message, code)
	})
}

// check returns 200 if the request is allowed, otherwise the status and message of the response.
func (a *access) check(r *http.Request) (code int, message string) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, "a bearer token is needed"
	}
	client := clientOf(r.RemoteAddr)
	who := a.decide(client, key(token, "", ""), func(ctx context.Context) (verdict, error) {
		return a.authenticate(ctx, token)
	})
	if who.err != nil || !who.allowed {
		return refusal(who, http.StatusUnauthorized, "the token is not valid")
	}
	verb, path := strings.ToLower(r.Method), r.URL.Path
	may := a.decide(client, key(token, verb, path), func(ctx context.Context) (verdict, error) {
		return a.authorize(ctx, who.user, verb, path)
	})
	if may.err != nil || !may.allowed {
		return refusal(may, http.StatusForbidden, fmt.Sprintf("%q may not %s %q", who.user.Username, verb, path))
	}
	return http.StatusOK, ""
}

func refusal(v verdict, denied int, message string) (int, string) {
	switch {
	case errors.Is(v.err, errLimited):
		return http.StatusTooManyRequests, "too many requests that need a review"
	case v.err != nil:
		return http.StatusServiceUnavailable, "the API server could not review the request"
	}
	return denied, message
}

// key identifies a request without storing its token. All keys have the same size.
func key(token, verb, path string) string {
	sum := sha256.Sum256([]byte(token + "\x00" + verb + "\x00" + path))
	return string(sum[:])
}

// decide returns the verdict for a key, either from the cache or from a review that all requests with the key share.
func (a *access) decide(client, key string, review func(context.Context) (verdict, error)) verdict {
	if v, found := a.remembered(key); found {
		return v
	}
	shared, _, _ := a.flights.Do(key, func() (any, error) {
		if v, found := a.remembered(key); found {
			return v, nil
		}
		if _, known := a.known.Get(key); !known && !a.limits.allow(client) {
			return verdict{err: errLimited}, nil
		}
		// Other requests share the verdict, so the review must not end with the request that started it.
		ctx, cancel := context.WithTimeout(context.Background(), reviewTimeout)
		defer cancel()
		v, err := review(ctx)
		switch {
		case err != nil:
			klog.ErrorS(err, "Failed to review metrics request", "client", client)
			v = verdict{err: err}
			a.refused.Add(key, v, failedFor)
		case v.allowed:
			v.until = time.Now().Add(allowedFor)
			a.known.Add(key, v, knownFor)
		default:
			a.known.Remove(key)
			a.refused.Add(key, v, deniedFor)
		}
		return v, nil
	})
	return shared.(verdict)
}

func (a *access) remembered(key string) (verdict, bool) {
	if v, found := a.refused.Get(key); found {
		return v.(verdict), true
	}
	if v, found := a.known.Get(key); found && time.Now().Before(v.(verdict).until) {
		return v.(verdict), true
	}
	return verdict{}, false
}

func (a *access) authenticate(ctx context.Context, token string) (verdict, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer, err := a.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, fmt.Errorf("review a token: %w", err)
	}
	return verdict{allowed: answer.Status.Authenticated, user: answer.Status.User}, nil
}

func (a *access) authorize(ctx context.Context, user authenticationv1.UserInfo, verb, path string) (verdict, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	answer, err := a.subject.Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
		}}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, fmt.Errorf("review the access of %q: %w", user.Username, err)
	}
	return verdict{allowed: answer.Status.Allowed && !answer.Status.Denied}, nil
}
