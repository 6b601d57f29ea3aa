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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bfd/watch"
)

// frr controls FRR's zebra and bfdd in the router's namespace.
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
		args := append([]string{"netns", "exec", ns, daemons + daemon[0], "-N", ns, "-u", "frr", "-g", "frr", "-f", conf,
			"-i", filepath.Join(f.dir, daemon[0]+".pid"),
			"-z", filepath.Join(f.dir, "zserv.api"), "--vty_socket", f.dir, "-A", "127.0.0.1", "-P", "0", "--log",
			"file:" + filepath.Join(f.dir, "log")}, daemon[1:]...)
		process := exec.Command("ip", args...)
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = process.Process.Kill()
			_ = process.Wait()
		})
		eventually(t, daemon[0]+" listens", func() bool {
			_, err := os.Stat(filepath.Join(f.dir, daemon[0]+".vty"))
			return err == nil
		})
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
	return []string{"receive-interval " + strconv.Itoa(interval), "transmit-interval " + strconv.Itoa(interval),
		"detect-multiplier 3"}
}

// frrPeer is a session in the output of bfdd.
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

func (f frr) show(t *testing.T) map[string]frrPeer {
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

// downs returns how often bfdd has seen the session go down.
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

// onLAN returns the target of the node's n-th address on the segment, and the node's address as bfdd's peer.
func onLAN(format string, n int, s bfd.Settings) (t watch.Target, peer string) {
	t = watch.Target{Local: netip.MustParseAddr(fmt.Sprintf(format, n)),
		Peer: netip.MustParseAddr(fmt.Sprintf(format, 100+n)), Settings: s}
	return t, t.Local.String()
}

const lan4, lan6 = "10.66.0.%d", "fd66::%d"

// withFRR contains a Watcher and bfdd as its peer, with a session for every way in which a BGP peer can be reached.
type withFRR struct {
	network
	frr
	*watcher
	targets map[string]watch.Target
	// peers are the node's addresses in those sessions.
	peers map[string]string
}

func (w withFRR) begin(t *testing.T, name, peer string, target watch.Target) {
	t.Helper()
	w.peer(t, peer, timers(int(target.Settings.Receive.Milliseconds()))...)
	w.peers[name], w.targets[name] = strings.Fields(peer)[0], target
	w.Watch(name, target)
}

func (w withFRR) beginOnLAN(t *testing.T, name, format string, host, interval int) {
	t.Helper()
	target, peer := onLAN(format, host, every(interval))
	w.begin(t, name, peer+" local-address "+target.Peer.String(), target)
}

func TestWithFRR(t *testing.T) {
	n := newNetwork(t)
	w := withFRR{n, startFRR(t, n.router), newWatcher(t, n.node), map[string]watch.Target{}, map[string]string{}}
	addr := netip.MustParseAddr
	passive, far := every(300), every(300)
	passive.Passive, far.Multihop, far.MinimumTTL = true, true, 254
	w.beginOnLAN(t, "IPv4", lan4, 1, 300)
	w.beginOnLAN(t, "IPv6", lan6, 1, 300)
	w.begin(t, "multihop IPv4", "10.67.0.1 multihop local-address 10.67.0.2",
		watch.Target{Peer: addr("10.67.0.2"), Local: addr("10.67.0.1"), Settings: far})
	w.begin(t, "multihop IPv6", "fd67::1 multihop local-address fd67::2",
		watch.Target{Peer: addr("fd67::2"), Local: addr("fd67::1"), Settings: far})
	w.begin(t, "link-local", "fe80::1 local-address fe80::2 interface lan",
		watch.Target{Peer: addr("fe80::2%lan"), Settings: every(300)})
	w.begin(t, "passive", "10.66.0.6 interface lan", watch.Target{Peer: addr("10.66.0.101"), Local: addr("10.66.0.6"),
		Interface: "lan", Settings: passive})
	w.beginOnLAN(t, "changing", lan4, 2, 300)
	w.beginOnLAN(t, "leaving", lan6, 2, 300)
	w.beginOnLAN(t, "shut", lan4, 3, 300)
	w.beginOnLAN(t, "50 ms", lan4, 4, 50)
	w.beginOnLAN(t, "100 ms", lan6, 4, 100)
	w.beginOnLAN(t, "300 ms", lan4, 5, 300)
	w.comeUp(t)
	t.Run("cases", func(t *testing.T) {
		t.Run("no flap", w.noFlap)
		t.Run("timers", w.timers)
		t.Run("leave", w.leave)
		t.Run("shut", w.shut)
	})
	w.lose(t)
}

// comeUp waits until both ends are up with the configured intervals.
func (w withFRR) comeUp(t *testing.T) {
	for name := range w.targets {
		w.awaitState(t, name, bfd.Up)
	}
	eventually(t, "bfdd has agreed on the intervals", func() bool {
		is := w.show(t)
		for name, target := range w.targets {
			if p := is[w.peers[name]]; p.Status != "up" || p.RemoteTransmit != int(target.Settings.Transmit.Milliseconds()) {
				return false
			}
		}
		return true
	})
	for name, target := range w.targets {
		s, _ := w.Session(name)
		if s.Interval != target.Settings.Transmit || s.Detection != 3*target.Settings.Receive || s.Err != nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// noFlap checks the sessions that are not changed by a test. If the machine was suspended for a while, a session with a
// shorter detection time may have gone down.
func (w withFRR) noFlap(t *testing.T) {
	t.Parallel()
	began := time.Now()
	pause := remains(t, "time passes", 5*time.Second, func() bool { return true })
	for name, target := range w.targets {
		if name == "changing" || name == "leaving" || name == "shut" {
			continue
		}
		s, _ := w.Session(name)
		downs := w.downs(t, w.peers[name])
		switch {
		case s.State == bfd.Up && s.Since.Before(began) && downs == 0:
		case pause > target.Settings.Receive/2:
			t.Logf("the machine stood still for %v: %s flapped", pause, name)
		default:
			t.Errorf("%s: %+v here, %d times down there, although no pause was longer than %v", name, s, downs, pause)
		}
	}
}

// timers changes the timers of both ends, up and down. The session must not flap.
func (w withFRR) timers(t *testing.T) {
	t.Parallel()
	const name, peer = "changing", "10.66.0.2 local-address 10.66.0.102"
	before := w.count(name)
	for _, interval := range []int{50, 1000, 20, 300} {
		target := w.targets[name]
		target.Settings = every(interval)
		w.Watch(name, target)
		eventually(t, "bfdd has learnt of the interval", func() bool {
			is := w.show(t)[w.peers[name]]
			return is.RemoteTransmit == interval && is.RemoteReceive == interval
		})
		want := time.Duration(max(interval, 300)) * time.Millisecond
		eventually(t, "the poll has ended", func() bool {
			s, _ := w.Session(name)
			return s.Interval == want && s.Detection == 3*want
		})
	}
	for _, interval := range []int{100, 300} {
		w.peer(t, peer, timers(interval)...)
		remains(t, "up", 700*time.Millisecond, func() bool { return w.state(name) == bfd.Up })
	}
	if states := w.states(name, before); len(states) > 0 || w.downs(t, w.peers[name]) > 0 {
		t.Errorf("flapped: %v here, %d times down there", states, w.downs(t, w.peers[name]))
	}
}

// leave makes bfdd's end go down at once.
func (w withFRR) leave(t *testing.T) {
	t.Parallel()
	const name = "leaving"
	before, left := w.count(name), time.Now()
	w.Leave(name)
	eventually(t, "bfdd is down because the peer reported it", func() bool {
		is := w.show(t)[w.peers[name]]
		return is.Status == "down" && is.Diagnostic == "neighbor signaled session down"
	})
	eventually(t, "forgotten", func() bool { _, ok := w.Session(name); return !ok })
	if states := slices.Compact(w.states(name, before)); !slices.Equal(states, []bfd.State{bfd.AdminDown}) {
		t.Errorf("while leaving: %v", states)
	}
	if took := time.Since(left); took < 2*time.Second {
		t.Errorf("removed after %v", took)
	}
	w.Watch(name, w.targets[name])
	w.awaitState(t, name, bfd.Up)
}

// shut disables the session in bfdd.
func (w withFRR) shut(t *testing.T) {
	t.Parallel()
	const name, peer = "shut", "10.66.0.3 local-address 10.66.0.103"
	w.peer(t, peer, "shutdown")
	if s := w.awaitState(t, name, bfd.Down); s.Diagnostic != bfd.NeighborSignaledDown {
		t.Errorf("after shutdown: %+v", s)
	}
	remains(t, "down", 300*time.Millisecond, func() bool { return w.state(name) == bfd.Down })
	w.peer(t, peer, "no shutdown")
	w.awaitState(t, name, bfd.Up)
	w.vtysh(t, "configure terminal", "bfd", "no peer "+peer)
	w.awaitState(t, name, bfd.Down)
	w.peer(t, peer, timers(300)...)
	w.awaitState(t, name, bfd.Up)
}

// lose cuts the segment. Both ends detect it within the detection time, and find each other again. It is tried several
// times, because a machine may be suspended now and then.
func (w withFRR) lose(t *testing.T) {
	const tries = 3
	for try := 1; ; try++ {
		late := w.late(t)
		if late == "" {
			return
		}
		if try == tries {
			t.Error(late)
			return
		}
		t.Log(late)
	}
}

// late returns which end of a session detected too late, or too early, that the segment was cut.
func (w withFRR) late(t *testing.T) (wrong string) {
	w.cut(t)
	cut := time.Now()
	// On a busy machine, vtysh takes as long as a detection. A session went down after the start of the last query that
	// shows it up, and before the end of the first one that shows it down.
	before, after := map[string]time.Duration{}, map[string]time.Duration{}
	eventually(t, "bfdd is down", func() bool {
		begun := time.Since(cut)
		for peer, is := range w.show(t) {
			if is.Status != "down" {
				before[peer] = begun
			} else if _, known := after[peer]; !known {
				after[peer] = time.Since(cut)
			}
		}
		return after[w.peers["300 ms"]] > 0
	})
	for _, interval := range []int{50, 100, 300} {
		name := fmt.Sprintf("%d ms", interval)
		here := w.awaitState(t, name, bfd.Down).Since.Sub(cut)
		from, to := before[w.peers[name]], after[w.peers[name]]
		t.Logf("3 x %s: down %v after the cut here, and there after %v to %v", name, here.Round(time.Millisecond),
			from.Round(time.Millisecond), to.Round(time.Millisecond))
		// The last packet was received at most one interval before the cut. On a busy machine, detection may take
		// longer.
		least, most := time.Duration(2*interval-50)*time.Millisecond, time.Duration(3*interval+300)*time.Millisecond
		if here < least || here > most || to < least || from > most {
			wrong = fmt.Sprintf("3 x %s: down after %v here and %v to %v there, want %v to %v", name, here, from, to, least,
				most)
		}
	}
	if w.state("multihop IPv4") != bfd.Up {
		t.Error("the way by the hop is not cut")
	}
	w.restore(t)
	for name := range w.targets {
		w.awaitState(t, name, bfd.Up)
	}
	eventually(t, "bfdd is up", func() bool {
		for _, is := range w.show(t) {
			if is.Status != "up" {
				return false
			}
		}
		return true
	})
	return wrong
}
