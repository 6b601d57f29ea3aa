// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
)

// site consists of three namespaces: a node and a router on a segment (10.66.0.0/24, the node below .100, the router
// above), and a hop that routes between their loopback addresses, 10.67.0.1 and .2.
//
//	node lan ─── hop lan-node [bridge] lan-router ── lan router
//	node far ─── hop far-node  [routes] far-router ─── far router
type site struct{ node, hop, router string }

// sites numbers the sites of this process.
var sites atomic.Int32

func newSite(t *testing.T) site {
	t.Helper()
	contract.TestAsRoot(t, "ip")
	number := sites.Add(1)
	name := func(short string) string { return fmt.Sprintf("bfd%d-%d-%s", os.Getpid(), number, short) }
	n := site{name("node"), name("hop"), name("router")}
	for _, ns := range []string{n.node, n.hop, n.router} {
		run(t, "ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		n.sysctl(t, ns, "net/ipv6/conf/all/accept_dad=0", "net/ipv6/conf/default/accept_dad=0", "net/ipv4/ip_forward=1",
			"net/ipv6/conf/all/forwarding=1")
	}
	for _, dev := range []string{"lan", "far"} {
		for end, ns := range map[string]string{"node": n.node, "router": n.router} {
			run(t, "ip", "link", "add", dev, "netns", ns, "type", "veth", "peer", "name", dev+"-"+end, "netns", n.hop)
		}
	}
	n.ip(t, n.hop, "link add br0 type bridge", "link set br0 up", "link set lan-node master br0 up",
		"link set lan-router master br0 up",
		"link set far-node up", "link set far-router up",
		"addr add 10.68.1.254/24 dev far-node", "addr add 10.68.2.254/24 dev far-router",
		"addr add fd68:1::254/64 dev far-node nodad", "addr add fd68:2::254/64 dev far-router nodad",
		"route add 10.67.0.1 via 10.68.1.1", "route add 10.67.0.2 via 10.68.2.1",
		"route add fd67::1 via fd68:1::1", "route add fd67::2 via fd68:2::1")
	for i, ns := range []string{n.node, n.router} {
		lines := []string{"link set lo up", "link set lan addrgenmode none up", "link set far up",
			fmt.Sprintf("addr add fe80::%d/64 dev lan nodad", i+1),
			fmt.Sprintf("addr add 10.67.0.%d/32 dev lo", i+1), fmt.Sprintf("addr add fd67::%d/128 dev lo nodad", i+1),
			fmt.Sprintf("addr add 10.68.%d.1/24 dev far", i+1), fmt.Sprintf("addr add fd68:%d::1/64 dev far nodad", i+1),
			fmt.Sprintf("route add 10.67.0.%d via 10.68.%d.254", 2-i, i+1), fmt.Sprintf("route add fd67::%d via fd68:%d::254",
				2-i, i+1)}
		for host := 1; host <= 10; host++ {
			lines = append(lines, fmt.Sprintf("addr add 10.66.0.%d/24 dev lan", 100*i+host),
				fmt.Sprintf("addr add fd66::%d/64 dev lan nodad", 100*i+host))
		}
		n.ip(t, ns, lines...)
	}
	return n
}

// cut blocks packets on the segment while both ends see their links up.
func (s site) cut(t *testing.T)     { s.ip(t, s.hop, "link set lan-router nomaster") }
func (s site) restore(t *testing.T) { s.ip(t, s.hop, "link set lan-router master br0") }

// addLate adds the interface "late" to the node, fe80::9, connected to the router's, fe80::8.
func (s site) addLate(t *testing.T) {
	t.Helper()
	run(t, "ip", "link", "add", "late", "netns", s.node, "type", "veth", "peer", "name", "late", "netns", s.router)
	s.ip(t, s.node, "link set late addrgenmode none up", "addr add fe80::9/64 dev late nodad")
	s.ip(t, s.router, "link set late addrgenmode none up", "addr add fe80::8/64 dev late nodad")
}

func (s site) ip(t *testing.T, ns string, lines ...string) {
	t.Helper()
	if err := ip.Batch(context.WithoutCancel(t.Context()), ns, lines...); err != nil {
		t.Fatal(err)
	}
}

func (s site) sysctl(t *testing.T, ns string, assignments ...string) {
	t.Helper()
	for _, a := range assignments {
		key, value, _ := strings.Cut(a, "=")
		run(t, "ip", "netns", "exec", ns, "sh", "-c", "echo "+value+" >/proc/sys/"+key)
	}
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// inside calls f on a thread in the namespace. The thread ends with the call.
func inside(ns string, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread is not reused
		done <- func() error {
			file, err := os.Open("/run/netns/" + ns)
			if err != nil {
				return err
			}
			defer file.Close()
			if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			return f()
		}()
	}()
	return done
}

// onLAN returns the target of the node's n-th address on the segment, and the node's address as the router's peer.
func onLAN(format string, n int, s bfd.Settings) (t Target, peer string) {
	t = target(fmt.Sprintf(format, n), fmt.Sprintf(format, 100+n), s)
	return t, t.Local.String()
}

const lan4, lan6 = "10.66.0.%d", "fd66::%d"

// run runs a Watcher in a namespace until the test ends.
func (s site) run(t *testing.T, ns string) watcher {
	t.Helper()
	w := New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := inside(ns, func() error { return w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return watcher{w}
}

// watcher is a Watcher with real peers.
type watcher struct{ *Watcher }

// await waits until a session is as wanted.
func (w watcher) await(t *testing.T, name, what string, wanted func(Session) bool) Session {
	t.Helper()
	var s Session
	await.NoError(t, fmt.Sprintf("session %s is %s", name, what), func(context.Context) error {
		if s, _ = w.Session(name); !wanted(s) {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	return s
}

// awaitState waits until a session has a state.
func (w watcher) awaitState(t *testing.T, name string, want bfd.State) Session {
	t.Helper()
	return w.await(t, name, want.String(), func(s Session) bool { return s.State == want })
}

// awaitGone waits until a session has been removed.
func (w watcher) awaitGone(t *testing.T, name string) {
	t.Helper()
	await.True(t, "session "+name+" is removed", func() bool { _, ok := w.Session(name); return !ok })
}
