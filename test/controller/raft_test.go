// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// members is the number of servers of a clustered database.
const members = 3

// raft starts databases of three servers each (ovsdb(7), Clustered Database Service Model). The servers use only TLS,
// including among each other.
func (c *cluster) raft(t *testing.T) *ovn {
	t.Helper()
	o := newOVN(t)
	cert, key, authority, err := c.plane.PeerCertificate("ovn")
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range []string{"nb", "sb"} {
		var first string
		e := slb.Endpoint{PrivateKey: key, Certificate: cert, CACert: authority}
		for i := range members {
			name, peer, address := member(db, i), "ssl:"+freeAddress(t), freeAddress(t)
			file := filepath.Join(o.dir, name+".db")
			if i == 0 {
				first = peer
				run(t, "ovsdb-tool", "create-cluster", file, ovnprefix.Schema("ovn/ovn-"+db+".ovsschema"), peer)
			} else {
				run(t, "ovsdb-tool", "join-cluster", file, schemaOf(db), peer, first)
			}
			host, port, _ := net.SplitHostPort(address)
			o.member(t, name, append([]string{"ovsdb-server", file, "--remote=pssl:" + port + ":" + host,
				"--unixctl=" + filepath.Join(o.dir, name+".ctl"), "-vsyslog:off"}, keys(e)...), address)
			run(t, "ovsdb-client", slices.Concat([]string{timeout(), "wait"}, keys(e),
				[]string{"ssl:" + address, schemaOf(db), "connected"})...)
			e.Address += ",ssl:" + address
		}
		e.Address = strings.TrimPrefix(e.Address, ",")
		o.endpoints[db] = e
	}
	o.furnish(t)
	return o
}

func member(db string, i int) string { return db + "-" + strconv.Itoa(i) }

func schemaOf(db string) string {
	return map[string]string{"nb": "OVN_Northbound", "sb": "OVN_Southbound"}[db]
}

// member starts a server and waits until it listens.
func (o *ovn) member(t *testing.T, name string, args []string, address string) {
	t.Helper()
	start(t, proc.Spec{Name: name, Dir: o.dir, Args: args, Ready: func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}})
}

// killMember kills a server with SIGKILL. The returned function starts it again.
func (o *ovn) killMember(t *testing.T, name string) (bringBack func()) {
	t.Helper()
	p, err := proc.Find(o.dir, name)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	db, i, _ := strings.Cut(name, "-")
	n, _ := strconv.Atoi(i)
	address := strings.TrimPrefix(strings.Split(o.endpoint(db).Address, ",")[n], "ssl:")
	return func() { o.member(t, name, p.Args, address) }
}

// leading waits until a member leads. It returns the name of the leader and a function that runs ovs-appctl on it.
func (o *ovn) leading(t *testing.T, db string) (name string, appctl func(args ...string) string) {
	t.Helper()
	eventually(t, "a server leads "+schemaOf(db), func() bool {
		for i := range members {
			name = member(db, i)
			out, err := exec.CommandContext(t.Context(), "ovs-appctl", "-t", filepath.Join(o.dir, name+".ctl"), "cluster/status",
				schemaOf(db)).Output()
			if err == nil && strings.Contains(string(out), "Role: leader") {
				return true
			}
		}
		return false
	})
	return name, func(args ...string) string {
		return run(t, "ovs-appctl", append([]string{"-t", filepath.Join(o.dir, name+".ctl")}, args...)...)
	}
}

// Each database has three servers and uses only TLS. In a burst the northbound leader transfers the leadership, and
// then the next leader is killed. Then the southbound leader is killed, and finally all servers at once.
func clusteredDatabasesFail(t *testing.T, c *cluster) {
	s := c.sceneOn(t, c.raft(t))
	only := c.command(t, s.binary, "only", s.ovn, "--leader-elect=false")
	eventually(t, "ready", func() bool { return only.get("/readyz") != "" })
	b := c.burst(t, 0, crowd, nil)
	b.reach(t, crowd/5)
	_, appctl := s.leading(t, "nb")
	appctl("cluster/failure-test", "transfer-leadership")
	b.reach(t, crowd/2)
	name, _ := s.leading(t, "nb")
	bringBack := s.killMember(t, name)
	b.wait(t)
	s.allServed(t)
	s.exact(t)
	bringBack()

	name, _ = s.leading(t, "sb")
	bringBack = s.killMember(t, name)
	s.claim(t, "chassis-2")
	s.allAnnounced(t, s.ovn, crowd)
	bringBack()

	var all []func()
	for _, db := range []string{"nb", "sb"} {
		for i := range members {
			all = append(all, s.killMember(t, member(db, i)))
		}
	}
	s.delete(t, "web-0")
	for _, bringBack := range all {
		bringBack()
	}
	eventually(t, "what changed meanwhile is written", func() bool { return len(s.loadBalancers(t)) == crowd-1 })
	s.strictly(t)
	s.nothingLeft(t)
}

// exact checks that each Service of the burst has its own backend behind its address, and that none of our rows exists
// twice.
func (s *scene) exact(t *testing.T) {
	t.Helper()
	want := map[string][]string{}
	for i := range crowd {
		address := s.addresses(t, fmt.Sprintf("web-%d", i))[0]
		want[address+":80"] = []string{podOf(i).String() + " 8080"}
	}
	var have map[string][]string
	defer func() {
		if t.Failed() {
			t.Logf("backends by address (-want +have):\n%s", cmp.Diff(want, have))
		}
	}()
	eventually(t, "each address leads to its backend, and no other does", func() bool {
		have = s.allBackends(t)
		for vip, backends := range want {
			if !slices.Equal(have[vip], backends) {
				return false
			}
		}
		return len(have) == len(want)
	})
	id := regexp.MustCompile(`"k8s.ovn.org/primary-id"="[^"]*"`)
	for table := range strings.SplitSeq(s.dump(t), "\n\n") {
		ids := id.FindAllString(table, -1)
		slices.Sort(ids)
		if n := len(ids) - len(slices.Compact(slices.Clone(ids))); n > 0 {
			t.Errorf("%d rows of ours are there twice:\n%s", n, table)
		}
	}
}
