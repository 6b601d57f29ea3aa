// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/connlimit"
)

const (
	// headerTimeout is the time limit for the TLS handshake and for the header of a request. It limits how long an
	// unchecked client occupies a connection.
	headerTimeout = 5 * time.Second
	// writeTimeout is the time limit for a response, and therefore for the duration of a profile.
	writeTimeout    = 2 * time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 2 * time.Second

	maxHeaderBytes = 16 << 10
	maxConnections = 128
	maxGathers     = 4
)

// Options configure a Server.
type Options struct {
	// Config is the configuration for the API server that reviews requests. Its account must be allowed to create
	// TokenReviews and SubjectAccessReviews.
	Config *rest.Config
	// Metrics are served at /metrics.
	Metrics prometheus.Gatherer
	// Profiles enables profiles at /debug/pprof/.
	Profiles bool
	// CertFile and KeyFile are the files of the server's certificate and key in PEM. They are reloaded when they change.
	// If both are empty, the server uses a self-signed certificate.
	CertFile, KeyFile string
}

// Server serves the metrics of a process.
type Server struct {
	handler      http.Handler
	certificates *certificates
}

// New returns a Server. It returns an error if the certificate files cannot be used.
func New(o Options) (*Server, error) {
	certificates, err := newCertificates(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, err
	}
	// Reviews have their own limits. The client's rate limit must not delay them behind other requests.
	config := rest.CopyConfig(o.Config)
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for reviews: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{MaxRequestsInFlight: maxGathers}))
	if o.Profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	check := newAccess(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews())
	return &Server{check.protect(mux), certificates}, nil
}

// Serve serves requests on listener until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       2 * headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		// Any client can cause these messages. They must not fill the log.
		ErrorLog: log.New(debugLog{}, "", 0),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: s.certificates.get,
			// HTTP/2 would allow many concurrent requests on one connection (CVE-2023-44487).
			NextProtos: []string{"http/1.1"},
		},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	defer context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		server.Shutdown(bounded) //nolint:errcheck // the process ends either way
	})()
	if err := server.ServeTLS(connlimit.New(listener, maxConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics at %s: %w", listener.Addr(), err)
	}
	return nil
}

// connectionKey is the key of a request's connection in its context.
type connectionKey struct{}

// trust keeps the connection of a request that is allowed from being closed for those of other clients.
func trust(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*tls.Conn); ok {
		connlimit.Trust(c.NetConn())
	}
}

// debugLog writes the messages of package http to the log.
type debugLog struct{}

func (debugLog) Write(text []byte) (int, error) {
	klog.V(4).InfoS("Metrics server", "message", strings.TrimSpace(string(text)))
	return len(text), nil
}
