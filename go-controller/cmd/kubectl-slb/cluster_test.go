// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The flags of kubectl that select the cluster and the user reach the API server.
func TestRequestsAreMadeAs(t *testing.T) {
	for command, want := range map[string]string{
		"status":                  "Bearer one; as  []",
		"status --user two":       "Bearer two; as  []",
		"status --context second": "Bearer two; as  []",
		"status --token three":    "Bearer three; as  []",
		"status --as dev --as-group a,b --as-group c": "Bearer one; as dev [a,b c]",
	} {
		s := &headers{}
		if out, err := s.run(t, command); err != nil || !slices.Equal(s.seen, []string{want}) {
			t.Errorf("%s: error %v, requests of %q, want %q; output\n%s", command, err, s.seen, want, out)
		}
	}
}

// Who must not impersonate gets an error, and not the answer that the impersonated user must not read anything.
func TestImpersonationIsRefused(t *testing.T) {
	s := &headers{refuse: true}
	const want = `--as "dev": users "dev" is forbidden`
	if out, err := s.run(t, "status --as dev"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s; output\n%s", err, want, out)
	}
}

// A cluster that the context does not have is named in the error.
func TestClusterIsSelected(t *testing.T) {
	s := &headers{}
	if out, err := s.run(t, "status --cluster other"); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("error %v, want one about cluster other; output\n%s", err, out)
	}
}

// headers is an API server without objects, which records for which user requests are made.
type headers struct {
	mu     sync.Mutex
	seen   []string
	refuse bool
}

func (h *headers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	by := fmt.Sprintf("%s; as %s %v", r.Header.Get("Authorization"), r.Header.Get("Impersonate-User"),
		r.Header.Values("Impersonate-Group"))
	if !slices.Contains(h.seen, by) {
		h.seen = append(h.seen, by)
	}
	h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if h.refuse {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden",`+
			`"message":"users \"dev\" is forbidden"}`)
		return
	}
	(&apiServer{}).ServeHTTP(w, r)
}

// run runs the program against the server, by a kubeconfig with two users.
func (h *headers) run(t *testing.T, command string) (string, error) {
	t.Helper()
	server := httptest.NewTLSServer(h)
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	text := fmt.Sprintf(`{"current-context":"first","contexts":[{"name":"first","context":{"cluster":"c","user":"one"}},`+
		`{"name":"second","context":{"cluster":"c","user":"two"}}],"clusters":[{"name":"c","cluster":{"server":%q,`+
		`"certificate-authority-data":%q}}],"users":[{"name":"one","user":{"token":"one"}},{"name":"two",`+
		`"user":{"token":"two"}}]}`, server.URL, base64.StdEncoding.EncodeToString(ca))
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return runWith(t, config, command)
}
