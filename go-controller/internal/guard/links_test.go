// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// A host that sends frames without end costs a bounded number of reads, whether they are answers or not. Silence means
// nothing meanwhile.
func TestFloodIsReadAtALimitedRate(t *testing.T) {
	for name, isAnswer := range map[string]bool{"answers": true, "other frames": false} {
		t.Run(name, func(t *testing.T) { testFlood(t, isAnswer) })
	}
}

func testFlood(t *testing.T, isAnswer bool) {
	synctest.Test(t, func(t *testing.T) {
		m, err := newMetrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		l := newLinks(nil)
		l.metrics = m
		const most = 62 * maxAnswerRate
		read, end, pauses := 0, time.Now().Add(time.Minute), pause{}
		go l.listen(t.Context(), "eth1", func() (neighbour.Answer, bool, error) {
			switch now := time.Now(); {
			case !now.Before(end) || read > most:
				return neighbour.Answer{}, false, os.ErrClosed
			case read > maxAnswerRate && !pauses.isRecent(now):
				t.Errorf("answers are relied on %s before the end of the flood", end.Sub(now))
			}
			read++
			if !isAnswer {
				return neighbour.Answer{}, false, nil
			}
			return claimOf(netip.MustParseAddr("10.50.0.9"), otherMAC), true, nil
		}, &pauses)
		go func() {
			for {
				select {
				case <-l.received:
				case <-t.Context().Done():
					return
				}
			}
		}()
		<-time.After(time.Minute + pauseMemory)
		synctest.Wait()
		if read > most {
			t.Errorf("over %d frames read in a minute", most)
		}
		if pauses.isRecent(time.Now()) {
			t.Error("answers are not relied on after the flood")
		}
	})
}

// Frames that the kernel discards, because a socket is full before its limit is reached, may be answers.
func TestProbesAfterLostFramesAreNotReliedOn(t *testing.T) {
	contract.TestAsRoot(t)
	runtime.LockOSThread() // never unlocked, so that the thread, which is in another namespace, is not reused
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "up0"}, PeerName: "host"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"up0", "host"} {
		if err := netlink.LinkSetUp(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := newLinks(func() (map[string]ovn.Uplinks, bool) {
		return map[string]ovn.Uplinks{"physnet": {Links: []ovn.Uplink{{Name: "up0"}}}}, true
	})
	l.metrics = m
	defer l.close()
	probe := func() (paused bool) {
		t.Helper()
		sent, paused := l.probe(t.Context(), netip.MustParseAddr("10.50.0.7"), "physnet", 0)
		if !sent {
			t.Error("not sent")
		}
		return paused
	}
	if probe() {
		t.Error("paused before the first frame")
	}
	host, err := neighbour.Open("host")
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	// The first frame waits for its reader, which there is none, so the others stay in the buffer.
	await.True(t, "a probe after lost frames", func() bool {
		for range 1000 {
			if err := host.Claim(netip.MustParseAddr("10.50.0.9")); err != nil {
				t.Fatal(err)
			}
		}
		return probe()
	})
	if testutil.ToFloat64(m.pauses) == 0 {
		t.Error("no pause is counted")
	}
}
