// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
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
	"github.com/ovn-org/libovsdb/ovsdb"
	"k8s.io/klog/v2"
)

const (
	// connectTimeout limits connecting, readTimeout limits the initial read of the database.
	connectTimeout = 20 * time.Second
	readTimeout    = 60 * time.Second
	// inactivityTimeout is how long a server may send nothing before the connection is considered lost.
	inactivityTimeout = 15 * time.Second
	minBackoff        = 100 * time.Millisecond
	maxBackoff        = 3 * time.Second
	// maxLocalBackoff is for servers on this host, which refuse at once while they don't run. Until the order of gateways
	// has been written to a database that returns, ovn-controller may act on the one of before.
	maxLocalBackoff = 200 * time.Millisecond
)

// Endpoint describes where a database is served.
type Endpoint struct {
	// Address is a comma-separated list of unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT (ovsdb(7), Connection Methods).
	// If the list has several entries, only the RAFT leader is used.
	Address string
	// PrivateKey, Certificate and CACert are PEM files for ssl. They are read again for each connection.
	PrivateKey, Certificate, CACert string
}

// addresses returns the addresses of the servers.
func (e Endpoint) addresses() []string {
	addresses := strings.Split(e.Address, ",")
	for i, a := range addresses {
		addresses[i] = strings.TrimSpace(a)
	}
	return addresses
}

// replica maintains a replica of a database.
type replica struct {
	name     string
	endpoint Endpoint
	schema   func() (model.ClientDBModel, []watch, error)
	handler  cache.EventHandler
	// onReset, if set, is called before a replica is filled, onSynced each time the replica is in sync, and onDisconnect,
	// if set, after that connection has ended. handler receives no event of a connection after onDisconnect, and none of
	// an earlier connection after onReset.
	onReset, onSynced, onDisconnect func()
	// anyServer allows any server of a clustered database to be read, not only the leader.
	anyServer bool
	// inactivityTimeout overrides the constant of that name unless it is zero, in nanoseconds.
	inactivityTimeout atomic.Int64
	conn              atomic.Pointer[connection]
	// reading is true while a server was found and the replica is being filled.
	reading atomic.Bool
	// readFailed is true if the last replica could not be filled.
	readFailed atomic.Bool
}

// connection is a connection whose replica is in sync.
type connection struct {
	client client.Client
	ctx    context.Context // done when the connection ends
}

// transact sends a transaction. It returns early if the connection ends before the reply arrives. The replica of the
// next connection then shows whether the transaction took effect.
func (c *connection) transact(ctx context.Context, ops []ovsdb.Operation) ([]ovsdb.OperationResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	var results []ovsdb.OperationResult
	err := until(ctx, func() (err error) {
		results, err = c.client.Transact(ctx, ops...)
		return err
	})
	switch {
	case err == nil:
		return results, nil
	case c.ctx.Err() != nil:
		return nil, client.ErrNotConnected
	}
	return nil, err // The call may still write results.
}

// until returns the error of a call of the client, or that of ctx once ctx is done. The client honors ctx only after it
// has written the request, and nothing limits that while the server reads nothing and the socket's buffer is full.
// Nothing that the client exports closes the socket meanwhile, so the call goes on, and keeps its replica in memory,
// until the server continues or the socket fails. Its result is discarded.
//
// The server may then execute the transaction, like one that was in the buffer when the connection ended, and the next
// replica shows it. It was begun in the leader's term (package fence), whose end ends the process and the write.
// Of the writes that wait for it, only a deletion by deleteOrphans may begin then, and the server verifies that the
// port is gone: all others wait for d.mu, and find no connection afterwards.
func until(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// current returns the current connection and its replica.
func (r *replica) current() (*connection, view, error) {
	c := r.conn.Load()
	if c == nil {
		return nil, view{}, fmt.Errorf("%s database at %s: %w", r.name, r.endpoint.Address, client.ErrNotConnected)
	}
	replica := c.client.Cache()
	if replica == nil {
		return nil, view{}, fmt.Errorf("%s database at %s: %w", r.name, r.endpoint.Address, client.ErrNotConnected)
	}
	return c, view{replica}, nil
}

// run connects, and reconnects, until ctx ends.
func (r *replica) run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithValues("database", r.name)
	wait := minBackoff
	for ctx.Err() == nil {
		connected, err := r.session(ctx, log)
		if connected {
			wait = minBackoff
			if r.onDisconnect != nil {
				r.onDisconnect()
			}
		}
		if ctx.Err() == nil {
			log.Error(err, "Disconnected from the database", "retryIn", wait)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, maxBackoff)
		}
	}
	return nil
}

// session runs one connection. It reports whether the replica was ever in sync.
func (r *replica) session(ctx context.Context, log klog.Logger) (connected bool, err error) {
	c := r.dial(ctx, log)
	if c == nil {
		return false, ctx.Err()
	}
	// The client reports a disconnect only to a goroutine that is receiving at that moment.
	lost, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-c.DisconnectNotify():
			close(lost)
		case <-done:
		}
	}()
	// Close waits for pending calls, which a silent server never answers. Cancel them first. Those that are still being
	// written go on (until), and the next session must not wait for them.
	defer func() { go c.Close() }()
	ctx, end := context.WithCancel(ctx)
	defer end()
	r.reading.Store(true)
	defer r.reading.Store(false)
	if r.onReset != nil {
		r.onReset()
	}
	events := &liveEvents{to: r.handler}
	defer events.end()
	if err := r.read(ctx, c, events); err != nil {
		r.readFailed.Store(true)
		return false, fmt.Errorf("read the database: %w", err)
	}
	r.conn.Store(&connection{client: c, ctx: ctx})
	defer r.conn.Store(nil)
	r.reading.Store(false)
	r.readFailed.Store(false)
	log.Info("Connected to the database", "endpoint", c.CurrentEndpoint(), "schema", c.Schema().Version)
	r.onSynced()
	return true, r.watch(ctx, c, lost)
}

// read fills the replica.
func (r *replica) read(ctx context.Context, c client.Client, events cache.EventHandler) error {
	_, watches, err := r.schema()
	if err != nil {
		return err
	}
	if len(watches) == 0 {
		return nil
	}
	c.Cache().AddEventHandler(events)
	m, err := monitor(c, watches)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	_, err = c.Monitor(ctx, m)
	return err
}

// watch probes the connection until the connection or ctx ends. It sends the first probe at once: the client retains
// the text of the last reply, which is the whole database, until the next reply arrives.
func (r *replica) watch(ctx context.Context, c client.Client, lost <-chan struct{}) error {
	for {
		interval := cmp.Or(time.Duration(r.inactivityTimeout.Load()), inactivityTimeout) / 3
		probe, cancel := context.WithTimeout(ctx, 2*interval)
		err := until(probe, func() error { return c.Echo(probe) })
		cancel()
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lost:
			return errors.New("connection lost")
		case <-time.After(interval):
		}
	}
}

// dial connects to the server, or to the RAFT leader if there are several servers. It returns nil only when ctx ends.
// Each server is tried independently and repeatedly, so a silent one, such as a host without power, does not delay
// the others.
func (r *replica) dial(ctx context.Context, log klog.Logger) client.Client {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan client.Client)
	addresses := r.endpoint.addresses()
	for _, address := range addresses {
		go func() {
			var logged time.Time
			for wait := minBackoff; ctx.Err() == nil; wait = nextWait(wait, address) {
				c, err := r.connect(ctx, address, len(addresses) > 1 && !r.anyServer)
				if err == nil {
					select {
					case found <- c:
					case <-ctx.Done():
						c.Close()
					}
					return
				}
				select {
				case <-ctx.Done(): // another server was found
				case <-time.After(wait):
				}
				if time.Since(logged) >= maxBackoff {
					log.Error(err, "Failed to connect to the database", "endpoint", address)
					logged = time.Now()
				}
			}
		}()
	}
	select {
	case c := <-found:
		return c
	case <-ctx.Done():
		return nil
	}
}

// nextWait returns how long to wait before the next attempt to reach a server, after a wait.
func nextWait(wait time.Duration, address string) time.Duration {
	if strings.HasPrefix(address, "unix:") {
		return min(2*wait, maxLocalBackoff)
	}
	return min(2*wait, maxBackoff)
}

// connect connects to one server. If leader is set, the server must be the leader.
func (r *replica) connect(ctx context.Context, address string, leader bool) (client.Client, error) {
	db, _, err := r.schema()
	if err != nil {
		return nil, err
	}
	quiet := klog.Background().V(4)
	options := []client.Option{client.WithLogger(&quiet), client.WithEndpoint(address), client.WithLeaderOnly(leader)}
	secure := strings.HasPrefix(address, "ssl:")
	if secure {
		config, err := r.endpoint.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithTLSConfig(config))
	}
	c, err := client.NewOVSDBClient(db, options...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err = c.Connect(ctx); err == nil {
		return c, nil
	}
	c.Close()
	if secure {
		err = fmt.Errorf("with certificate %s: %w", r.endpoint.Certificate, err)
	}
	return nil, err
}

// tls returns a configuration that verifies the server's certificate chain but not its name. All of OVN does the
// same, because OVN certificates contain no names (ovs-pki(8)).
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
		return nil, fmt.Errorf("load CA certificate %s: the file contains no certificate", e.CACert)
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
			if _, err := s.PeerCertificates[0].Verify(chain); err != nil {
				return fmt.Errorf("the server's certificate, by CA certificate %s: %w", e.CACert, err)
			}
			return nil
		},
	}, nil
}

// check validates an endpoint.
func (e Endpoint) check(name string) error {
	for _, a := range e.addresses() {
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
