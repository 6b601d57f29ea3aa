// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// Without Open vSwitch's database there are no links to probe, so a known conflict is kept for as long as the report of
// a guard that is gone.
func TestConflictOutlivesRestartOfDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type result struct {
			conflicts map[netip.Addr]convert.ConflictReport
			completed []string
		}
		results := make(chan result, 10)
		i := newAddressProber(func() (map[string]ovn.Uplinks, bool) { return nil, false },
			func(found map[netip.Addr]convert.ConflictReport, probed []string) {
				results <- result{found, probed}
			})
		go i.run(t.Context())
		i.leases <- &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			v1alpha1.AnnotationAddressProbes: `[{"id":"1-1","network":"physnet","addresses":["10.50.0.7"]}]`,
			v1alpha1.AnnotationConflicts: `{"10.50.0.7":{"mac":"02:00:00:00:00:01","since":"2026-01-01T00:00:00Z",` +
				`"probe":"1-1"}}`,
		}}}
		<-time.After(39 * time.Second)
		synctest.Wait()
		first := <-results
		if got := first.conflicts[netip.MustParseAddr("10.50.0.7")]; got.MAC != "02:00:00:00:00:01" || got.Probe != "1-1" {
			t.Errorf("conflicts %v", first.conflicts)
		}
		if len(results) > 0 {
			t.Fatalf("within 39 s: %v", <-results)
		}
		<-time.After(3 * time.Second)
		synctest.Wait()
		if len(results) != 1 {
			t.Fatalf("after 42 s: %d reports, want 1", len(results))
		}
		if last := <-results; len(last.conflicts) != 0 || len(last.completed) != 0 {
			t.Errorf("after 42 s: %v", last)
		}
	})
}

// The kernel discards frames on a link without carrier and reports no error. The socket of a device that was replaced
// stays without one.
func TestProbesThatAreNotSent(t *testing.T) {
	contract.TestAsRoot(t)
	runtime.LockOSThread() // never unlocked, so that the thread, which is in another namespace, is not reused
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	link := ovn.Uplink{Name: "up0"}
	i := newAddressProber(func() (map[string]ovn.Uplinks, bool) {
		return map[string]ovn.Uplinks{"physnet": {Links: []ovn.Uplink{link}}}, true
	}, nil)
	i.metrics = m
	defer i.close()
	send := func() bool {
		sent, _ := i.probe(t.Context(), netip.MustParseAddr("10.50.0.7"), "physnet", 0)
		return sent
	}
	resend := func() bool { // the first attempt detects that the device was replaced
		for range 2 {
			if send() {
				return true
			}
		}
		return false
	}
	if send() {
		t.Error("sent without a device")
	}
	add := func() netlink.Link {
		device := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: link.Name}, PeerName: "peer"}
		if err := netlink.LinkAdd(device); err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(device); err != nil {
			t.Fatal(err)
		}
		return device
	}
	for _, which := range []string{"the first", "its replacement"} {
		device := add()
		if !resend() {
			t.Errorf("not sent on %s device", which)
		}
		if err := netlink.LinkDel(device); err != nil {
			t.Fatal(err)
		}
	}
	add()
	if !resend() {
		t.Error("not sent on a third device")
	}
	if link.NoCarrier = true; send() {
		t.Error("sent without a carrier")
	}
}

// Other frames of the segment must not be as expensive as there are probes: any host may send as many as it likes.
func TestFramesAboutOtherAddressesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, reports atomic.Int32 // a read here does not happen before the next call
		i := newAddressProber(func() (map[string]ovn.Uplinks, bool) { calls.Add(1); return nil, false },
			func(map[netip.Addr]convert.ConflictReport, []string) { reports.Add(1) })
		go i.run(t.Context())
		i.leases <- &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			v1alpha1.AnnotationAddressProbes: `[{"id":"1-1","network":"physnet","addresses":["10.50.0.7"]}]`,
		}}}
		synctest.Wait()
		for range 100 {
			i.received <- receivedAnswer{"eth1", neighbour.Answer{Addr: netip.MustParseAddr("10.50.0.8")}}
		}
		synctest.Wait()
		if calls.Load() != 1 || reports.Load() != 1 {
			t.Errorf("%d reads of the networks and %d reports, want one for the probe", calls.Load(), reports.Load())
		}
		<-time.After(time.Second)
		if synctest.Wait(); calls.Load() < 2 {
			t.Error("the probe is not repeated")
		}
	})
}
