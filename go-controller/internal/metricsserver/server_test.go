// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// serve runs a Server that sends reviews to the API server at URL api, and returns the Server's address.
func serve(t *testing.T, api string, o Options) string {
	t.Helper()
	o.Config, o.Metrics = &rest.Config{Host: api}, prometheus.NewRegistry()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func request(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestServerWithoutAPIServer covers an API server that refuses connections, and one that accepts them and never
// responds.
func TestServerWithoutAPIServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	for name, api := range map[string]net.Listener{"silent": silent, "gone": gone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, "http://"+api.Addr().String(), Options{Profiles: true})
			for _, path := range []string{"/metrics", "/debug/pprof/heap"} {
				if code, body := request(t, "https://"+address+path, "any"); code != http.StatusServiceUnavailable {
					t.Errorf("%s: status %d: %s", path, code, body)
				}
			}
		})
	}
}

func TestServerRefusesPlainHTTP(t *testing.T) {
	address := serve(t, "http://127.0.0.1:1", Options{})
	if code, body := request(t, "http://"+address+"/metrics", "any"); code != http.StatusBadRequest ||
		!strings.Contains(body, "HTTPS") {
		t.Errorf("status %d: %s", code, body)
	}
}

// pair writes a new self-signed certificate and its key to files.
func pair(t *testing.T, certFile, keyFile string) {
	t.Helper()
	c := &certificates{}
	if err := c.sign(time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.current.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: c.current.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
}

// presented returns the certificate that a server presents.
func presented(t *testing.T, address string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return string(conn.ConnectionState().PeerCertificates[0].Raw)
}

func TestServerReloadsCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := New(Options{CertFile: cert, KeyFile: key}); err == nil || !strings.Contains(err.Error(), cert) {
		t.Fatalf("files that are not there: %v", err)
	}
	pair(t, cert, key)
	address := serve(t, "http://127.0.0.1:1", Options{CertFile: cert, KeyFile: key})
	first := presented(t, address)
	if presented(t, address) != first {
		t.Error("another certificate without a reason")
	}
	pair(t, cert, filepath.Join(dir, "other"))
	if presented(t, address) != first {
		t.Error("a certificate is presented without its key")
	}
	pair(t, cert, key)
	second := presented(t, address)
	if second == first {
		t.Error("the new certificate is not presented")
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	if presented(t, address) != second {
		t.Error("what was read last is gone with the file")
	}
}

func TestSelfSignedCertificateIsRenewedBeforeExpiry(t *testing.T) {
	c, err := newCertificates("", "")
	if err != nil {
		t.Fatal(err)
	}
	first := c.current
	parsed, err := x509.ParseCertificate(first.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.sign(time.Now().Add(selfSignedFor / 4)); err != nil || c.current != first {
		t.Errorf("replaced too early (%v)", err)
	}
	if err := c.sign(parsed.NotAfter.Add(-selfSignedFor / 4)); err != nil || c.current == first {
		t.Errorf("not replaced (%v)", err)
	}
}
