// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-org/libovsdb/client"
	"github.com/ovn-org/libovsdb/model"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
)

func TestEndpointsAreChecked(t *testing.T) {
	for address, want := range map[string]string{
		"":                         `northbound address ""`,
		"unix:":                    `northbound address "unix:"`,
		"http://x":                 `northbound address "http://x"`,
		"tcp:a:6641,b:6641":        `northbound address "b:6641"`,
		"tcp:a:6641,ssl:b:6641":    "ssl needs a private key",
		"tcp:a:6641, tcp:b:6641":   "",
		"tcp:[::1]:6641,unix:/run": "",
	} {
		_, err := New(Options{NB: Endpoint{Address: address}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
}

// The database of a zone may be gone for long, and must get the present order of gateways soon after it has returned.
func TestServersOnTheHostAreTriedOften(t *testing.T) {
	for address, want := range map[string]time.Duration{"unix:/run/ovn/ovnnb_db.sock": maxLocalBackoff,
		"tcp:192.0.2.1:6641": maxBackoff, "ssl:192.0.2.1:6641": maxBackoff} {
		wait := minBackoff
		for range 20 {
			wait = nextWait(wait, address)
		}
		if wait != want {
			t.Errorf("%s: waits %v between attempts in the end, want %v", address, wait, want)
		}
	}
}

// The server's certificate chain is verified but not its name, because OVN's certificates contain none. Certificate
// errors name the file.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := authority(t, dir, "ca")
	ca.issue(t, dir, "server")
	ca.issue(t, dir, "client")
	otherCA := authority(t, dir, "otherca")
	otherCA.issue(t, dir, "intruder")
	s := serve(t, schema)
	s.kill()
	log := filepath.Join(dir, "log")
	s.start(t, "--remote=pssl:0:127.0.0.1", "--log-file="+log, "--private-key="+dir+"/server.key",
		"--certificate="+dir+"/server.crt", "--ca-cert="+ca.file)
	s.clusterRows(t)
	var port string
	await.True(t, "the server logs its port", func() bool {
		text, _ := os.ReadFile(log) // It may not exist yet.
		_, rest, _ := strings.Cut(string(text), "listening on port ")
		found := false
		port, _, found = strings.Cut(rest, "\n")
		return found
	})

	endpoint := Endpoint{Address: "ssl:127.0.0.1:" + port, PrivateKey: dir + "/client.key",
		Certificate: dir + "/client.crt", CACert: ca.file}
	d, _ := connect(t, Options{NB: endpoint})
	configure(t, d, topology(1))

	for what, c := range map[string]struct {
		change func(*Endpoint)
		want   []string
	}{
		"a server with an unknown CA": {func(e *Endpoint) {
			e.CACert = otherCA.file
		}, []string{otherCA.file, "unknown authority"}},
		"a client with an unknown CA": {func(e *Endpoint) {
			e.Certificate, e.PrivateKey = dir+"/intruder.crt", dir+"/intruder.key"
		},
			[]string{"with certificate " + dir + "/intruder.crt"}},
		"the key of another": {func(e *Endpoint) {
			e.PrivateKey = dir + "/intruder.key"
		}, []string{dir + "/client.crt", dir + "/intruder.key", "does not match"}},
		"no certificate": {func(e *Endpoint) {
			e.CACert = dir + "/client.key"
		}, []string{dir + "/client.key", "the file contains no certificate"}},
		"no file": {func(e *Endpoint) { e.CACert = dir + "/absent" }, []string{dir + "/absent", "no such file"}},
	} {
		e := endpoint
		c.change(&e)
		_, err := (&replica{name: "northbound", endpoint: e, schema: northbound("")}).connect(t.Context(), e.Address, false)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
	}
}

// A server that accepts connections but does not answer, as on a frozen host, does not delay connections to the
// others.
func TestUnresponsiveServerDoesNotBlock(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	d, _ := connect(t, Options{NB: Endpoint{Address: "tcp:" + silent.Addr().String() + ", unix:" + s.socket}})
	configure(t, d, topology(1))
}

// The leader freezes in the middle of a transaction: the connection remains but is not answered. The client drops it
// and continues with the new leader, which may or may not have the transaction.
func TestFrozenLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	members := cluster(t, 3)
	clusterRows(t, "--db="+addresses(members))
	d, err := New(Options{NB: Endpoint{Address: addresses(members)}})
	if err != nil {
		t.Fatal(err)
	}
	start(t, d)
	await.True(t, "the leader takes our rows", func() bool { return d.Configure(t.Context(), topology(1)) == nil })
	leader := awaitLeader(t, members, d)
	// Only for the leader that freezes: on a busy machine, others may be as slow.
	d.nb.inactivityTimeout.Store(int64(1500 * time.Millisecond))
	if err := leader.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	plan := service(1, 1, "10.244.1.10")
	// On a busy machine, d may have the new leader before it has begun.
	failed := d.Apply(t.Context(), []dataplane.Change{{Key: plan.Key, Want: plan}})
	if err := failed[plan.Key]; err != nil && !errors.Is(err, client.ErrNotConnected) {
		t.Errorf("while no server answers: %v", err)
	}
	d.nb.inactivityTimeout.Store(0)
	await.True(t, "the new leader takes our rows", func() bool {
		return d.Configure(t.Context(), topology(1)) == nil && len(d.Apply(t.Context(),
			[]dataplane.Change{{Key: plan.Key, Want: plan}})) == 0
	})
	if err := leader.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// On a busy machine, the leader may change again at any time.
	await.NoError(t, "the leader removes other rows", func(ctx context.Context) error {
		return d.Prune(ctx, func(key world.Key) bool { return key == plan.Key })
	})
	names := strings.Fields(run(t, "ovn-nbctl", "--db="+addresses(members), "--bare", "--columns=name", "list",
		"Load_Balancer"))
	slices.Sort(names)
	if len(names) != 6 || len(slices.Compact(names)) != 6 { // four of the Service, two of the node
		t.Errorf("load balancers %v", names)
	}
}

// The server freezes, and a transaction does not fit into the buffer of its socket, so that writing it blocks. The
// connection ends as any other that is silent, and what was half written does no harm when the server continues.
func TestFrozenServerDoesNotBlockALargeTransaction(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	const patient = 45 * time.Second // far longer than a busy machine stalls
	d, _ := connectFor(t, Options{NB: Endpoint{Address: "unix:" + s.socket}}, patient)
	configure(t, d, topology(1))
	frozen := d.nb.conn.Load()
	// Only for the server that freezes: on a busy machine, it may be as slow later.
	d.nb.inactivityTimeout.Store(int64(1500 * time.Millisecond))
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	plans := crowd(100, 1, 300) // the first transaction has 640 kB, a socket buffers about 210 kB
	var changes []dataplane.Change
	for _, p := range plans {
		changes = append(changes, dataplane.Change{Key: p.Key, Want: p})
	}
	applied := make(chan map[world.Key]error, 1)
	go func() { applied <- d.Apply(t.Context(), changes) }()
	failed := await.Receive(t, "the transaction ends while the server does not answer", applied)
	if err := failed[plans[0].Key]; !errors.Is(err, client.ErrNotConnected) {
		t.Errorf("while the server does not answer: %v", err)
	}
	if d.UnreadNB() == nil {
		t.Error("the database counts as connected")
	}
	d.nb.inactivityTimeout.Store(int64(patient))
	if err := s.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the server takes our rows", func() bool {
		return d.Configure(t.Context(), topology(1)) == nil && len(d.Apply(t.Context(), changes)) == 0
	})
	await.True(t, "the lost connection is closed", func() bool { return !frozen.client.Connected() })
	prune(t, d, plans...)
	if names := strings.Fields(s.nbctl(t, "--bare", "--columns=name", "find", "Load_Balancer",
		"external_ids:"+rows.KeyOwnerType+"="+rows.OwnerService)); len(names) != 4*len(plans) {
		t.Errorf("%d load balancers of Services, want %d", len(names), 4*len(plans))
	}
}

// In a cluster of three servers, the client follows the leader.
func TestFollowsTheLeader(t *testing.T) {
	t.Parallel()
	members := cluster(t, 3)
	clusterRows(t, "--db="+addresses(members))
	d, events := connect(t, Options{NB: Endpoint{Address: addresses(members)}})
	await.True(t, "the leader takes our rows", func() bool { return d.Configure(t.Context(), topology(1)) == nil })
	leader := awaitLeader(t, members, d)
	drain(events)
	leader.kill()
	waitFor(t, events, Rows)
	await.True(t, "the new leader takes our rows", func() bool { return d.Configure(t.Context(), topology(2)) == nil })
}

func addresses(members []*server) string {
	var all []string
	for _, m := range members {
		all = append(all, "unix:"+m.socket)
	}
	return strings.Join(all, ",")
}

// awaitLeader returns the leader when there is exactly one and d is connected to it. On a busy machine, it may change.
func awaitLeader(t *testing.T, members []*server, d *Dataplane) (leader *server) {
	t.Helper()
	await.True(t, "d is connected to the only leader", func() bool {
		var leaders []*server
		for _, m := range members {
			status := run(t, "ovs-appctl", "-t", m.socket+".ctl", "cluster/status", "OVN_Northbound")
			if strings.Contains(status, "Role: leader") {
				leaders = append(leaders, m)
			}
		}
		c, _, err := d.nb.current()
		if len(leaders) != 1 || err != nil || c.client.CurrentEndpoint() != "unix:"+leaders[0].socket {
			return false
		}
		leader = leaders[0]
		return true
	})
	return leader
}

// cluster starts a RAFT cluster of ovsdb-servers.
func cluster(t *testing.T, n int) []*server {
	t.Helper()
	contract.Test(t, "ovsdb-server")
	var members []*server
	var first string
	for range n {
		dir := t.TempDir()
		m := &server{file: filepath.Join(dir, "nb.db"), socket: filepath.Join(dir, "nb.sock")}
		address := "unix:" + filepath.Join(dir, "raft.sock")
		if first == "" {
			first = address
			run(t, "ovsdb-tool", "create-cluster", m.file, ovnprefix.Schema(schema), address)
		} else {
			run(t, "ovsdb-tool", "join-cluster", m.file, "OVN_Northbound", address, first)
		}
		m.start(t)
		t.Cleanup(m.kill)
		members = append(members, m)
		run(t, "ovsdb-client", "wait", "unix:"+m.socket, "OVN_Northbound", "connected")
	}
	return members
}

// issuer is a certificate authority.
type issuer struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func authority(t *testing.T, dir, name string) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name+".crt")
	store(t, file, "CERTIFICATE", der)
	return issuer{file: file, cert: cert, key: key}
}

// issue creates a certificate as ovs-pki does: with a common name and no alternative names.
func (i issuer) issue(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name + " id:4711"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, i.cert, key.Public(), i.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	store(t, filepath.Join(dir, name+".crt"), "CERTIFICATE", der)
	store(t, filepath.Join(dir, name+".key"), "PRIVATE KEY", secret)
}

func store(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A server answers, but its rows can't be read. It counts as connected during the first attempt, but not during later
// ones. A leader without rows eventually gives up its lease.
func TestUnreadableDatabaseIsNotConnected(t *testing.T) {
	t.Parallel()
	s := serve(t, "ovn/ovn-nb.ovsschema")
	calls := 0
	l := &replica{name: "northbound", endpoint: Endpoint{Address: "unix:" + s.socket},
		schema: func() (model.ClientDBModel, []watch, error) {
			db, watches, err := northboundOf("")
			if calls++; calls%2 == 0 { // each connection calls it twice: to connect, and to read
				err = errors.New("no memory")
			}
			return db, watches, err
		}}
	if connected, err := l.session(t.Context(), klog.Background()); connected || err == nil {
		t.Fatalf("connected %t: %v", connected, err)
	}
	l.reading.Store(true) // as in the next attempt
	if err := unreachable(l); err == nil {
		t.Error("the database counts as connected while it is read again")
	}
}
