// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
)

// network consists of three namespaces: a node and a router on a segment (10.66.0.0/24, the node below .100, the router
// above), and a hop that routes between their loopback addresses, 10.67.0.1 and .2.
//
//	node lan ─── hop lan-node [bridge] lan-router ── lan router
//	node far ─── hop far-node  [routes] far-router ─── far router
type network struct{ node, hop, router string }

func newNetwork(t *testing.T) network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces: make e2e runs this as root")
	}
	name := func(short string) string {
		return fmt.Sprintf("bfd%d-%s-%s", os.Getpid(), strings.ToLower(t.Name()[4:8]), short)
	}
	n := network{name("node"), name("hop"), name("router")}
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
func (n network) cut(t *testing.T)     { n.ip(t, n.hop, "link set lan-router nomaster") }
func (n network) restore(t *testing.T) { n.ip(t, n.hop, "link set lan-router master br0") }

// addLate adds the interface "late" to the node, fe80::9, connected to the router's, fe80::8.
func (n network) addLate(t *testing.T) {
	t.Helper()
	run(t, "ip", "link", "add", "late", "netns", n.node, "type", "veth", "peer", "name", "late", "netns", n.router)
	n.ip(t, n.node, "link set late addrgenmode none up", "addr add fe80::9/64 dev late nodad")
	n.ip(t, n.router, "link set late addrgenmode none up", "addr add fe80::8/64 dev late nodad")
}

func (n network) ip(t *testing.T, ns string, lines ...string) {
	t.Helper()
	cmd := exec.Command("ip", "-n", ns, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in %s: %v: %s", ns, err, out)
	}
}

func (n network) sysctl(t *testing.T, ns string, assignments ...string) {
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

// watcher contains a Watcher that runs in a namespace, and all its notifications.
type watcher struct {
	*watch.Watcher
	stop func() // like the end of the process

	mu     sync.Mutex
	events map[string][]event
}

type event struct {
	at time.Time
	watch.Session
}

func newWatcher(t *testing.T, ns string) *watcher {
	t.Helper()
	w := &watcher{events: map[string][]event{}}
	w.Watcher = watch.New(func(name string, s watch.Session) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events[name] = append(w.events[name], event{time.Now(), s})
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := inside(ns, func() error { return w.Run(ctx) })
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// states returns the states notified for a session, from the n-th on.
func (w *watcher) states(name string, from int) []bfd.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	var states []bfd.State
	for _, e := range w.events[name][from:] {
		states = append(states, e.State)
	}
	return states
}

func (w *watcher) count(name string) int { return len(w.states(name, 0)) }

// total returns the number of notifications of all sessions.
func (w *watcher) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, events := range w.events {
		n += len(events)
	}
	return n
}

func (w *watcher) state(name string) bfd.State {
	s, _ := w.Session(name)
	return s.State
}

func (w *watcher) awaitState(t *testing.T, name string, want bfd.State) watch.Session {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %s", name, want), func() bool { return w.state(name) == want })
	s, _ := w.Session(name)
	return s
}

// awaitTold waits for the notification, which comes a moment after Session returns the same state.
func (w *watcher) awaitTold(t *testing.T, name string, want bfd.State) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is reported as %s", name, want), func() bool {
		states := w.states(name, 0)
		return len(states) > 0 && states[len(states)-1] == want
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// remains asserts that a condition stays true for a while, and returns the longest time between two checks.
func remains(t *testing.T, what string, span time.Duration, ok func() bool) (pause time.Duration) {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for last := began; last.Sub(began) < span; {
		if !ok() {
			t.Fatalf("no more: %s", what)
		}
		<-tick.C
		now := time.Now()
		pause, last = max(pause, now.Sub(last)), now
	}
	return pause
}
