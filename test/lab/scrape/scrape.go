// SPDX-License-Identifier: Apache-2.0

// Package scrape reads the product's metrics and profiles in tests and benchmarks as Prometheus does: over TLS, with
// the token of a ServiceAccount that has permission to get them.
package scrape

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	namespace = "monitoring"
	account   = "prometheus"
	// ClusterRoles in dist/manifests/rbac.
	metricsReader = "ovnkube-slb-metrics-reader"
	pprofReader   = "ovnkube-slb-pprof-reader"
)

const manifest = `
apiVersion: v1
kind: Namespace
metadata: {name: ` + namespace + `}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: ` + namespace + `}
`

const binding = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[2]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: ` + namespace + `}]
`

// Scraper reads with a token. The zero value has none.
type Scraper struct{ Token string }

// Cluster runs kubectl as an administrator, like a control plane of package controlplane.
type Cluster interface {
	Apply(ctx context.Context, manifest string) error
	Kubectl(ctx context.Context, args ...string) (string, error)
}

// New creates a ServiceAccount with permission to get metrics and profiles.
func New(ctx context.Context, plane Cluster) (*Scraper, error) {
	return As(ctx, plane, account, metricsReader, pprofReader)
}

// As creates a ServiceAccount with the ClusterRoles, if any.
func As(ctx context.Context, plane Cluster, account string, roles ...string) (*Scraper, error) {
	objects := fmt.Sprintf(manifest, account)
	for _, role := range roles {
		objects += fmt.Sprintf(binding, account, role)
	}
	if err := plane.Apply(ctx, objects); err != nil {
		return nil, fmt.Errorf("account %s for metrics: %w", account, err)
	}
	token, err := plane.Kubectl(ctx, "--namespace="+namespace, "create", "token", account, "--duration=24h")
	if err != nil {
		return nil, fmt.Errorf("account %s for metrics: %w", account, err)
	}
	return &Scraper{strings.TrimSpace(token)}, nil
}

// Get returns the response body for a path on HOST:PORT. A status other than 200 is an error.
func (s *Scraper) Get(ctx context.Context, address, path string) (string, error) {
	code, body, err := s.Do(ctx, "https://"+address+path)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("get %s of %s: status %d: %s", path, address, code, strings.TrimSpace(body))
	}
	return body, err
}

// Do returns the status and body of a GET with the token.
func (s *Scraper) Do(ctx context.Context, url string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if s.Token != "" {
		request.Header.Set("Authorization", "Bearer "+s.Token)
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		// The certificate is self-signed.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // see above
	}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}
