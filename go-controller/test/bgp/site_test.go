// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const nodeASN, routerASN = 64500, 64512

// site is a router and the node's link to it. On the link, the router is host 1 and the node has all hosts from 2 on.
type site struct {
	frr.Router
	dev    string
	v4, v6 netip.Prefix
}

// newSite creates the router and its link. subnet is the number of the site in this package.
func newSite(t *testing.T, subnet int) *site { t.Helper(); return newSiteOf(t, subnet, "") }

// newSiteOf is newSite with the FRR in a directory.
func newSiteOf(t *testing.T, subnet int, prefix string) *site {
	t.Helper()
	contract.TestAsRoot(t, "ip", "nft")
	dir := os.Getenv(inside)
	name := fmt.Sprintf("%s-%d", filepath.Base(dir), subnet)
	s := &site{
		Router: frr.Router{Name: name, Dir: filepath.Join(dir, fmt.Sprint(subnet)), Netns: name,
			Prefix: prefix},
		dev: fmt.Sprintf("tor%d", subnet),
		v4:  netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", subnet)),
		v6:  netip.MustParsePrefix(fmt.Sprintf("2001:db8:%x::/64", subnet)),
	}
	run(t, "ip", "netns", "add", name)
	run(t, "ip", "netns", "exec", name, "sh", "-c",
		"for f in all default; do echo 0 >/proc/sys/net/ipv6/conf/$f/accept_dad; done; echo 1 "+
			">/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
	run(t, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; ip link set lo up")
	s.link(t, s.dev, "eth0")
	batch(t, "", s.hosts(64)...)
	batch(t, name, fmt.Sprintf("addr add %s dev eth0", s.host(false, 1)),
		fmt.Sprintf("addr add %s dev eth0 nodad", s.host(true, 1)))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.configure(t, s.base()...)
	return s
}

// base returns the configuration of a router without neighbors.
func (s *site) base() []string {
	return []string{
		fmt.Sprintf("router bgp %d", routerASN),
		" bgp router-id 10.255.0.1", " no bgp ebgp-requires-policy", " no bgp default ipv4-unicast",
		" bgp bestpath as-path multipath-relax", " timers bgp 30 90",
	}
}

// link adds a veth from the node to the router.
func (s *site) link(t *testing.T, dev, peer string) {
	t.Helper()
	batch(t, "", fmt.Sprintf("link add %s type veth peer name %s netns %s", dev, peer, s.Netns), "link set "+dev+" up")
	batch(t, s.Netns, "link set lo up", "link set "+peer+" up")
}

// host returns an address on the link with its prefix length.
func (s *site) host(v6 bool, n int) netip.Prefix {
	p := s.v4
	if v6 {
		p = s.v6
	}
	a := p.Addr()
	for range n {
		a = a.Next()
	}
	return netip.PrefixFrom(a, p.Bits())
}

// hosts returns lines of ip(8) that give the node a number of hosts.
func (s *site) hosts(n int) (lines []string) {
	for host := range n {
		lines = append(lines, fmt.Sprintf("addr add %s dev %s", s.host(false, host+2), s.dev),
			fmt.Sprintf("addr add %s dev %s nodad", s.host(true, host+2), s.dev))
	}
	return lines
}

func (s *site) configure(t *testing.T, lines ...string) {
	t.Helper()
	if err := s.Configure(t.Context(), lines...); err != nil {
		t.Fatal(err)
	}
}

// neighbor returns the configuration of the node's host n as a neighbor that carries both families.
func (s *site) neighbor(v6 bool, n int, asn any, lines ...string) []string {
	a := s.host(v6, n).Addr()
	all := []string{fmt.Sprintf("router bgp %d", routerASN), fmt.Sprintf(" neighbor %s remote-as %v", a, asn)}
	for _, line := range lines {
		all = append(all, fmt.Sprintf(" neighbor %s %s", a, line))
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		all = append(all, " address-family "+family+" unicast", fmt.Sprintf("  neighbor %s activate", a),
			"  maximum-paths 64", " exit-address-family")
	}
	return all
}

// session returns a session of the node's host n with the router, for both families. The hold time is far longer than a
// busy machine stalls: a session ends before that only because of what a test does.
func (s *site) session(name string, v6 bool, n int) bgp.Session {
	return bgp.Session{
		Peer: name,
		Neighbor: bgp.Neighbor{
			MyASN: nodeASN, PeerASN: routerASN, Addr: s.host(v6, 1).Addr(), Source: s.host(v6, n).Addr(), Port: 179,
			Hold: 90 * time.Second, Keepalive: 30 * time.Second, Connect: 2 * time.Second,
			RouterID: s.host(false, n).Addr(), IPv4: true, IPv6: true,
		},
	}
}

// routes returns routes to prefixes of both families with next hops on the link.
func (s *site) routes(n int, prefixes ...string) map[netip.Prefix]bgp.Attributes {
	routes := map[netip.Prefix]bgp.Attributes{}
	for _, p := range prefixes {
		prefix := netip.MustParsePrefix(p)
		routes[prefix] = bgp.Attributes{NextHop: s.host(prefix.Addr().Is6(), n).Addr()}
	}
	return routes
}

// neighborState returns FRR's state of a neighbor.
func (s *site) neighborState(ctx context.Context, a string) (map[string]any, error) {
	var all map[string]map[string]any
	if err := s.Show(ctx, "show bgp neighbors "+a+" json", &all); err != nil {
		return nil, err
	}
	return all[a], nil
}

// path returns FRR's only path to a prefix from a neighbor.
func (s *site) path(ctx context.Context, prefix netip.Prefix, from string) (map[string]any, error) {
	family := "ipv4"
	if prefix.Addr().Is6() {
		family = "ipv6"
	}
	var table struct {
		Paths []map[string]any `json:"paths"`
	}
	if err := s.Show(ctx, "show bgp "+family+" unicast "+prefix.String()+" json", &table); err != nil {
		return nil, err
	}
	for _, p := range table.Paths {
		if peer, _ := p["peer"].(map[string]any); peer["peerId"] == from {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no path to %s from %s: %v", prefix, from, table.Paths)
}

// logUpdates makes the router log the UPDATEs that it receives. Its table only shows the last one.
func (s *site) logUpdates(t *testing.T) {
	t.Helper()
	s.configure(t, "log stdout debugging", "debug bgp updates in")
	// Without it, FRR 10 logs no attributes. Earlier versions do, and do not have the command.
	_ = s.Configure(t.Context(), "debug bgp updates detail")
}

// log returns the log of the router's BGP daemon.
func (s *site) log(t *testing.T) string {
	t.Helper()
	bgpd, err := proc.Find(s.Dir, frr.BGPD)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(bgpd.Log())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// drained waits until the router has received a route with GRACEFUL_SHUTDOWN and then its withdrawal, according to the
// log after its first bytes. attributes is a regular expression for what precedes the community in the log.
func (s *site) drained(t *testing.T, from, attributes string, first int) {
	t.Helper()
	from = ` ` + regexp.QuoteMeta(from) + `\b[^\n]* rcvd UPDATE `
	want := regexp.MustCompile(`(?s)` + from + `w/ attr: [^\n]*` + attributes + `community graceful-shutdown.*` + from +
		`about [^\n]* withdrawn`)
	eventually(t, func(context.Context) error {
		if text := s.log(t)[first:]; !want.MatchString(text) {
			return fmt.Errorf("the router's log does not match %s: %s", want, text)
		}
		return nil
	})
}

// node is a speaker in this process.
type node struct {
	*speaker.Speaker
	mu      sync.Mutex
	desired map[string]bgp.Session

	recording sync.Mutex
	// history are the states of each session, in order and without repetitions. A session keeps some only for an instant.
	history map[string][]speaker.State
}

// newNode runs a speaker until the test ends, and then lets it withdraw all routes.
func newNode(t *testing.T, o speaker.Options) *node {
	t.Helper()
	n := &node{desired: map[string]bgp.Session{}, history: map[string][]speaker.State{}}
	o.Notify = n.record
	n.Speaker = speaker.New(o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		n.Set(nil)
		eventually(t, func(context.Context) error {
			if left := n.States(); len(left) > 0 {
				return fmt.Errorf("sessions are left: %v", left)
			}
			return nil
		})
		cancel()
		<-ended
	})
	return n
}

// record adds the present states to the history. The speaker waits for it after each change.
func (n *node) record() {
	n.recording.Lock()
	defer n.recording.Unlock()
	for _, s := range n.States() {
		was := n.history[s.Peer]
		if len(was) == 0 || was[len(was)-1] != s {
			n.history[s.Peer] = append(was, s)
		}
	}
}

// want adds or changes a session.
func (n *node) want(s bgp.Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.desired[s.Peer] = s
	n.Set(slices.Collect(maps.Values(n.desired)))
}

// forget removes a session.
func (n *node) forget(peer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.desired, peer)
	n.Set(slices.Collect(maps.Values(n.desired)))
}

func (n *node) state(peer string) speaker.State {
	for _, s := range n.States() {
		if s.Peer == peer {
			return s
		}
	}
	return speaker.State{}
}

// established waits for a session and returns its state.
func (n *node) established(t *testing.T, peer string) speaker.State {
	t.Helper()
	eventually(t, func(context.Context) error {
		if s := n.state(peer); s.Phase != speaker.Established {
			return fmt.Errorf("session %s is %s, last error %q", peer, s.Phase, s.LastError)
		}
		return nil
	})
	return n.state(peer)
}

// eventually waits until f returns nil.
func eventually(t *testing.T, f func(context.Context) error) {
	t.Helper()
	await.NoError(t, "the state is not as wanted", f)
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// batch runs lines of ip(8) in a namespace, or in the node's if netns is empty.
func batch(t *testing.T, netns string, lines ...string) {
	t.Helper()
	if err := ip.Batch(t.Context(), netns, lines...); err != nil {
		t.Fatal(err)
	}
}

// lookup returns the value at a path such as "paths.0.metric" in decoded JSON, as JSON, or an empty string.
func lookup(from any, path string) string {
	for _, key := range strings.Split(path, ".") {
		switch v := from.(type) {
		case map[string]any:
			from = v[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(v) {
				return ""
			}
			from = v[i]
		default:
			return ""
		}
	}
	if from == nil {
		return ""
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(from); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}
