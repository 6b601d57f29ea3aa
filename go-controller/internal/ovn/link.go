// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/client"
	"github.com/ovn-org/libovsdb/model"
	"k8s.io/klog/v2"
)

const (
	// dialTimeout bounds connecting and reading the database once.
	dialTimeout = 60 * time.Second
	// probeInterval is how often a silent connection is probed, probeTimeout how long
	// the server has to answer.
	probeInterval = 5 * time.Second
	probeTimeout  = 10 * time.Second
	minBackoff    = 100 * time.Millisecond
	maxBackoff    = 3 * time.Second
)

// Endpoint is where a database is served.
type Endpoint struct {
	// Address is a comma-separated list of unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT
	// (ovsdb(7), Connection Methods). Of several, only the RAFT leader is used.
	Address string
	// PrivateKey, Certificate and CACert are files in PEM form, for ssl; they are read
	// anew at every connection.
	PrivateKey, Certificate, CACert string
}

// link keeps a replica of a database.
type link struct {
	name     string
	endpoint Endpoint
	schema   func() (model.ClientDBModel, []watch, error)
	handler  cache.EventHandler
	// up is called after each time the replica is in sync.
	up     func()
	client atomic.Pointer[client.Client]
}

// current returns the connected client and its replica.
func (l *link) current() (client.Client, view, error) {
	c := l.client.Load()
	if c == nil {
		return nil, view{}, fmt.Errorf("%s database at %s: %w", l.name, l.endpoint.Address, client.ErrNotConnected)
	}
	replica := (*c).Cache()
	if replica == nil {
		return nil, view{}, fmt.Errorf("%s database at %s: %w", l.name, l.endpoint.Address, client.ErrNotConnected)
	}
	return *c, view{replica}, nil
}

// run connects, and connects again, until ctx ends.
func (l *link) run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithValues("database", l.name, "address", l.endpoint.Address)
	wait := minBackoff
	for ctx.Err() == nil {
		connected, err := l.session(ctx, log)
		if connected {
			wait = minBackoff
		}
		if ctx.Err() == nil {
			log.Error(err, "No connection to the database", "retryIn", wait)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, maxBackoff)
		}
	}
	return nil
}

// session is the life of one connection; it tells whether the replica was ever in sync.
func (l *link) session(ctx context.Context, log klog.Logger) (connected bool, err error) {
	c, watches, err := l.open()
	if err != nil {
		return false, err
	}
	// The client reports a loss only to who listens at that moment.
	lost, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-c.DisconnectNotify():
			close(lost)
		case <-done:
		}
	}()
	defer c.Close()
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := c.Connect(dial); err != nil {
		return false, err
	}
	c.Cache().AddEventHandler(l.handler)
	m, err := monitor(c, watches)
	if err != nil {
		return false, err
	}
	if _, err := c.Monitor(dial, m); err != nil {
		return false, fmt.Errorf("read the database: %w", err)
	}
	l.client.Store(&c)
	defer l.client.Store(nil)
	log.Info("Connected to the database", "endpoint", c.CurrentEndpoint(), "schema", c.Schema().Version)
	l.up()
	return true, l.watch(ctx, c, lost)
}

// watch probes the connection until it or ctx ends.
func (l *link) watch(ctx context.Context, c client.Client, lost <-chan struct{}) error {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lost:
			return errors.New("connection lost")
		case <-tick.C:
			probe, cancel := context.WithTimeout(ctx, probeTimeout)
			err := c.Echo(probe)
			cancel()
			if err != nil {
				return fmt.Errorf("probe: %w", err)
			}
		}
	}
}

func (l *link) open() (client.Client, []watch, error) {
	db, watches, err := l.schema()
	if err != nil {
		return nil, nil, err
	}
	quiet := klog.Background().V(4)
	options := []client.Option{client.WithLogger(&quiet)}
	addresses := strings.Split(l.endpoint.Address, ",")
	secure := false
	for _, a := range addresses {
		options = append(options, client.WithEndpoint(a))
		secure = secure || strings.HasPrefix(a, "ssl:")
	}
	if len(addresses) > 1 {
		options = append(options, client.WithLeaderOnly(true))
	}
	if secure {
		config, err := l.endpoint.tls()
		if err != nil {
			return nil, nil, err
		}
		options = append(options, client.WithTLSConfig(config))
	}
	c, err := client.NewOVSDBClient(db, options...)
	return c, watches, err
}

// tls verifies the server's chain but not its name, as all of OVN does: its certificates
// carry none (ovs-pki(8)).
func (e Endpoint) tls() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(e.Certificate, e.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("load certificate %s with key %s: %w", e.Certificate, e.PrivateKey, err)
	}
	pem, err := os.ReadFile(e.CACert)
	if err != nil {
		return nil, fmt.Errorf("load CA certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("load CA certificate %s: no certificate in it", e.CACert)
	}
	return &tls.Config{
		Certificates:       []tls.Certificate{pair},
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // replaced by VerifyConnection
		VerifyConnection: func(s tls.ConnectionState) error {
			chain := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, c := range s.PeerCertificates[1:] {
				chain.Intermediates.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(chain)
			return err
		},
	}, nil
}

// check tells what is wrong with an endpoint.
func (e Endpoint) check(name string) error {
	for a := range strings.SplitSeq(e.Address, ",") {
		scheme, rest, _ := strings.Cut(a, ":")
		if rest == "" || scheme != "unix" && scheme != "tcp" && scheme != "ssl" {
			return fmt.Errorf("%s address %q: want unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT", name, a)
		}
	}
	if strings.Contains(e.Address, "ssl:") && (e.PrivateKey == "" || e.Certificate == "" || e.CACert == "") {
		return fmt.Errorf("%s address %q: ssl needs a private key, a certificate and a CA certificate", name, e.Address)
	}
	return nil
}
