// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
)

// frr is FRR's zebra and bfdd in the router's namespace.
type frr struct{ dir string }

func startFRR(t *testing.T, ns string) frr {
	t.Helper()
	const daemons = "/usr/lib/frr/"
	if _, err := os.Stat(daemons + "bfdd"); err != nil {
		t.Fatalf("%v: apt-get install frr", err)
	}
	owner, err := user.Lookup("frr")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(owner.Uid) // on Linux both are numbers
	gid, _ := strconv.Atoi(owner.Gid)
	f := frr{t.TempDir()}
	conf := filepath.Join(f.dir, "frr.conf")
	if err := os.WriteFile(conf, []byte("hostname router\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Dir(f.dir), f.dir, conf} {
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	for _, daemon := range [][]string{{"zebra"}, {"bfdd", "--bfdctl", filepath.Join(f.dir, "bfdd.sock")}} {
		args := append([]string{"netns", "exec", ns, daemons + daemon[0], "-N", ns, "-u", "frr", "-g", "frr", "-f", conf, "-i", filepath.Join(f.dir, daemon[0]+".pid"),
			"-z", filepath.Join(f.dir, "zserv.api"), "--vty_socket", f.dir, "-A", "127.0.0.1", "-P", "0", "--log", "file:" + filepath.Join(f.dir, "log")}, daemon[1:]...)
		process := exec.Command("ip", args...)
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = process.Process.Kill()
			_ = process.Wait()
		})
		eventually(t, daemon[0]+" listens", func() bool { _, err := os.Stat(filepath.Join(f.dir, daemon[0]+".vty")); return err == nil })
	}
	return f
}

func (f frr) vtysh(t *testing.T, lines ...string) string {
	t.Helper()
	args := []string{"vtysh", "--vty_socket", f.dir}
	for _, line := range lines {
		args = append(args, "-c", line)
	}
	return run(t, args...)
}

// peer configures bfdd's end of a session.
func (f frr) peer(t *testing.T, peer string, lines ...string) {
	t.Helper()
	f.vtysh(t, append([]string{"configure terminal", "bfd", "peer " + peer}, lines...)...)
}

func timers(interval int) []string {
	return []string{"receive-interval " + strconv.Itoa(interval), "transmit-interval " + strconv.Itoa(interval), "detect-multiplier 3"}
}

// frrPeer is what bfdd tells of a session.
type frrPeer struct {
	Peer             string
	Local            string
	Status           string
	RemoteDiagnostic string `json:"remote-diagnostic"`
	Diagnostic       string
	RemoteTransmit   int `json:"remote-transmit-interval"`
	RemoteReceive    int `json:"remote-receive-interval"`
	RemoteMultiplier int `json:"remote-detect-multiplier"`
}

func (f frr) peers(t *testing.T) map[string]frrPeer {
	t.Helper()
	var list []frrPeer
	if err := json.Unmarshal([]byte(f.vtysh(t, "show bfd peers json")), &list); err != nil {
		t.Fatal(err)
	}
	byPeer := map[string]frrPeer{}
	for _, p := range list {
		byPeer[p.Peer] = p
	}
	return byPeer
}

// downs is how often bfdd saw the session go down.
func (f frr) downs(t *testing.T, peer string) int {
	t.Helper()
	var list []struct {
		Peer  string
		Downs int `json:"session-down"`
	}
	if err := json.Unmarshal([]byte(f.vtysh(t, "show bfd peers counters json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Peer == peer {
			return p.Downs
		}
	}
	t.Fatalf("bfdd has no peer %s", peer)
	return 0
}

func every(ms int) bfd.Settings {
	interval := time.Duration(ms) * time.Millisecond
	return bfd.Settings{Transmit: interval, Receive: interval, Multiplier: 3}
}

// onLAN is the target of the node's n-th address on the segment; bfdd's peer is the node.
func onLAN(format string, n int, s bfd.Settings) (t watch.Target, peer string) {
	t = watch.Target{Local: netip.MustParseAddr(fmt.Sprintf(format, n)), Peer: netip.MustParseAddr(fmt.Sprintf(format, 100+n)), Settings: s}
	return t, t.Local.String()
}

const lan4, lan6 = "10.66.0.%d", "fd66::%d"

// FRR's bfdd is the peer, in every way that a BGP peer can be reached.
func TestWithFRR(t *testing.T) {
	n := newNetwork(t)
	f := startFRR(t, n.router)
	w := newWatcher(t, n.node)

	passive, far := every(300), every(300)
	passive.Passive, far.Multihop, far.MinimumTTL = true, true, 254
	targets := map[string]watch.Target{}
	begin := func(name, peer string, target watch.Target, lines ...string) string {
		f.peer(t, peer, lines...)
		targets[name] = target
		w.Watch(name, target)
		return strings.Fields(peer)[0]
	}
	simple := func(name, format string, host, interval int) string {
		target, peer := onLAN(format, host, every(interval))
		return begin(name, peer+" local-address "+target.Peer.String(), target, timers(interval)...)
	}
	peers := map[string]string{
		"IPv4":      simple("IPv4", lan4, 1, 300),
		"IPv6":      simple("IPv6", lan6, 1, 300),
		"changing":  simple("changing", lan4, 2, 300),
		"leaving":   simple("leaving", lan6, 2, 300),
		"shut":      simple("shut", lan4, 3, 300),
		"50 ms":     simple("50 ms", lan4, 4, 50),
		"100 ms":    simple("100 ms", lan6, 4, 100),
		"300 ms":    simple("300 ms", lan4, 5, 300),
		"multihop4": begin("multihop4", "10.67.0.1 multihop local-address 10.67.0.2", watch.Target{Peer: netip.MustParseAddr("10.67.0.2"), Local: netip.MustParseAddr("10.67.0.1"), Settings: far}, timers(300)...),
		"multihop6": begin("multihop6", "fd67::1 multihop local-address fd67::2", watch.Target{Peer: netip.MustParseAddr("fd67::2"), Local: netip.MustParseAddr("fd67::1"), Settings: far}, timers(300)...),
		"linklocal": begin("linklocal", "fe80::1 local-address fe80::2 interface lan", watch.Target{Peer: netip.MustParseAddr("fe80::2%lan"), Settings: every(300)}, timers(300)...),
		"passive":   begin("passive", "10.66.0.6 interface lan", watch.Target{Peer: netip.MustParseAddr("10.66.0.101"), Local: netip.MustParseAddr("10.66.0.6"), Interface: "lan", Settings: passive}, timers(300)...),
	}
	for name := range peers {
		w.awaitState(t, name, bfd.Up)
	}
	eventually(t, "bfdd has agreed on the intervals", func() bool {
		for name, peer := range f.peers(t) {
			if peer.Status != "up" || peer.RemoteTransmit > 300 {
				t.Logf("%s: %+v", name, peer)
				return false
			}
		}
		return true
	})
	for name, target := range targets {
		s, _ := w.Session(name)
		if s.Interval != target.Settings.Transmit || s.Detection != 3*target.Settings.Receive || s.Err != nil {
			t.Errorf("%s: %+v", name, s)
		}
	}

	t.Run("cases", func(t *testing.T) {
		t.Run("no flap", func(t *testing.T) {
			t.Parallel()
			steady := []string{"IPv4", "IPv6", "multihop4", "multihop6", "linklocal", "passive", "50 ms", "100 ms", "300 ms"}
			remains(t, "up", 5*time.Second, func() bool {
				for _, name := range steady {
					if w.state(name) != bfd.Up {
						t.Error(name, w.states(name, 0))
						return false
					}
				}
				return true
			})
			for _, name := range steady {
				if downs := f.downs(t, peers[name]); downs > 0 {
					t.Errorf("%s: bfdd has seen it go down %d times", name, downs)
				}
			}
		})
		t.Run("timers", func(t *testing.T) {
			t.Parallel()
			before := w.count("changing")
			for _, interval := range []int{50, 1000, 20, 300} {
				target := targets["changing"]
				target.Settings = every(interval)
				w.Watch("changing", target)
				eventually(t, "bfdd has learnt of the interval", func() bool {
					is := f.peers(t)[peers["changing"]]
					return is.RemoteTransmit == interval && is.RemoteReceive == interval
				})
				want := time.Duration(max(interval, 300)) * time.Millisecond
				eventually(t, "the poll has ended", func() bool {
					s, _ := w.Session("changing")
					return s.Interval == want && s.Detection == 3*want
				})
				f.peer(t, "10.66.0.2 local-address 10.66.0.102", timers(300)...)
			}
			for _, interval := range []int{50, 300} {
				f.peer(t, "10.66.0.2 local-address 10.66.0.102", timers(interval)...)
				remains(t, "up", 700*time.Millisecond, func() bool { return w.state("changing") == bfd.Up })
			}
			if states := w.states("changing", before); len(states) > 0 || f.downs(t, peers["changing"]) > 0 {
				t.Errorf("flapped: %v here, %d times down there", states, f.downs(t, peers["changing"]))
			}
		})
		t.Run("leave", func(t *testing.T) {
			t.Parallel()
			w.Leave("leaving")
			left := time.Now()
			eventually(t, "bfdd is down", func() bool { return f.peers(t)[peers["leaving"]].Status == "down" })
			if took := time.Since(left); took > 500*time.Millisecond {
				t.Errorf("bfdd was down after %v only", took)
			}
			if s, ok := w.Session("leaving"); !ok || s.State != bfd.AdminDown {
				t.Errorf("while leaving: %+v %v", s, ok)
			}
			eventually(t, "forgotten", func() bool { _, ok := w.Session("leaving"); return !ok })
			if took := time.Since(left); took < 2*time.Second {
				t.Errorf("forgotten after %v", took)
			}
			w.Watch("leaving", targets["leaving"])
			w.awaitState(t, "leaving", bfd.Up)
		})
		t.Run("shut", func(t *testing.T) {
			t.Parallel()
			const peer = "10.66.0.3 local-address 10.66.0.103"
			f.peer(t, peer, "shutdown")
			if s := w.awaitState(t, "shut", bfd.Down); s.Diagnostic != bfd.NeighborSaidDown {
				t.Errorf("after shutdown: %+v", s)
			}
			remains(t, "down", 300*time.Millisecond, func() bool { return w.state("shut") == bfd.Down })
			f.peer(t, peer, "no shutdown")
			w.awaitState(t, "shut", bfd.Up)
			f.vtysh(t, "configure terminal", "bfd", "no peer "+peer)
			w.awaitState(t, "shut", bfd.Down)
			f.peer(t, peer, timers(300)...)
			w.awaitState(t, "shut", bfd.Up)
		})
	})

	n.cut(t)
	cut := time.Now()
	for _, interval := range []int{50, 100, 300} {
		name := fmt.Sprintf("%d ms", interval)
		s := w.awaitState(t, name, bfd.Down)
		took := s.Since.Sub(cut)
		t.Logf("3 x %s: down %v after the cut: %s", name, took.Round(time.Millisecond), s.Diagnostic)
		// The packet heard last came an interval before the cut at most, and two machines' worth of tests may keep us.
		if least, most := time.Duration(2*interval-50)*time.Millisecond, time.Duration(3*interval+100)*time.Millisecond; took < least || took > most {
			t.Errorf("want %v to %v", least, most)
		}
	}
	eventually(t, "bfdd is down", func() bool { return f.peers(t)[peers["300 ms"]].Status == "down" })
	if w.state("multihop4") != bfd.Up {
		t.Error("the path by the hop is not cut")
	}
	n.mend(t)
	for name := range peers {
		w.awaitState(t, name, bfd.Up)
	}
}
