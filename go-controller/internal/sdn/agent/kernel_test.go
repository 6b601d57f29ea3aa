// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// segment is the interface of newNode.
const segment = "eth1"

// newNode moves the test to a new network namespace that has an interface with a carrier.
func newNode(t *testing.T) *reconciler {
	t.Helper()
	contract.TestAsRoot(t, "ip")
	runtime.LockOSThread() // for good: the thread, and with it the namespace, ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	ip(t, "link", "add", segment, "type", "veth", "peer", "name", "peer")
	for _, dev := range []string{"peer", segment} {
		ip(t, "link", "set", dev, "addrgenmode", "none", "up")
	}
	r := newProcess(t)
	// The kernel reports the carrier some time after it is there.
	await.NoError(t, "the segment has a carrier", func(context.Context) error {
		_, err := r.readLinks()
		if err == nil && r.down[segment] {
			err = fmt.Errorf("down are %v", r.down)
		}
		return err
	})
	return r
}

// newProcess returns the state of an agent that has just started.
func newProcess(t *testing.T) *reconciler {
	t.Helper()
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	return newReconciler(m)
}

func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// addrs returns what the kernel reports about the addresses of the segment.
func addrs(t *testing.T) string { return ip(t, "-d", "-o", "addr", "show", "dev", segment) }

func (r *reconciler) step(t *testing.T, renew bool) {
	t.Helper()
	if _, err := r.readLinks(); err != nil {
		t.Fatal(err)
	}
	r.apply(renew)
}

// assign makes addresses the ones that the node is to hold.
func (r *reconciler) assign(list ...netip.Addr) {
	var held []world.Held
	for _, a := range list {
		held = append(held, world.Held{Addr: a, Interface: segment, Generation: 1})
	}
	r.setWanted(held, "1")
}

// others are addresses that other programs may add, as arguments of ip(8).
func others() map[netip.Addr][]string {
	return map[netip.Addr][]string{
		netip.MustParseAddr("10.50.0.60"):  {"10.50.0.60/32", "label", segment + ":eip"},
		netip.MustParseAddr("10.50.0.61"):  {"10.50.0.61/32"},
		netip.MustParseAddr("10.50.0.63"):  {"10.50.0.63", "peer", "10.50.0.64/32"},
		netip.MustParseAddr("10.50.0.11"):  {"10.50.0.11/24"},
		netip.MustParseAddr("fd00:50::60"): {"fd00:50::60/128", "nodad"},
		netip.MustParseAddr("fd00:50::61"): {"fd00:50::61/128", "nodad", "noprefixroute", "preferred_lft", "0"},
		netip.MustParseAddr("fd00:50::11"): {"fd00:50::11/64", "nodad"},
	}
}

// An address that another program has added is neither renewed nor removed, also while it is assigned to the node. The
// node holds it once the other program has removed it.
func TestAddressesOfOthersStay(t *testing.T) {
	r := newNode(t)
	var list []netip.Addr
	for a, args := range others() {
		ip(t, append([]string{"addr", "add", "dev", segment}, args...)...)
		list = append(list, a)
	}
	same := func(when, before string) {
		t.Helper()
		if now := addrs(t); now != before {
			t.Errorf("%s:\n%swant:\n%s", when, now, before)
		}
	}
	before := addrs(t)
	r.assign(list...)
	for range 2 {
		r.step(t, true)
		for _, a := range list {
			want := "interface eth1 has " + a.String() + ", and not from here"
			if r.failed[a] != want {
				t.Errorf("%s: %q, want %q", a, r.failed[a], want)
			}
		}
	}
	same("they are assigned", before)
	r.assign()
	r.step(t, true)
	same("they are no longer assigned", before)

	for _, args := range others() {
		ip(t, "addr", "del", "dev", segment, args[0])
	}
	r.assign(list...)
	r.step(t, false)
	if len(r.failed) > 0 || r.count() != len(list) {
		t.Errorf("%d are held, failed %v", r.count(), r.failed)
	}
}

// Addresses that other programs have added are those of the node, and no Service gets them, also without a subnet.
// Those of Services are not.
func TestAddressesOfOthersAreReported(t *testing.T) {
	r := newNode(t)
	for _, args := range others() {
		ip(t, append([]string{"addr", "add", "dev", segment}, args...)...)
	}
	r.assign(netip.MustParseAddr("10.50.0.70"), netip.MustParseAddr("fd00:50::70"))
	r.step(t, true)
	if _, err := r.readLinks(); err != nil || r.count() != 2 {
		t.Fatalf("%d are held (%v), failed %v", r.count(), err, r.failed)
	}
	list := r.singles()
	for _, p := range r.interfaces()[segment] {
		list = append(list, p.Addr())
	}
	slices.SortFunc(list, netip.Addr.Compare)
	if want := slices.SortedFunc(maps.Keys(others()), netip.Addr.Compare); !slices.Equal(list, want) {
		t.Errorf("reported are %v, want %v", list, want)
	}
	if len(r.interfaces()[segment]) != 2 {
		t.Errorf("with a subnet: %v", r.interfaces())
	}
}

// A new process recognises the addresses of the one before, and removes those that are not assigned.
func TestAddressesOfEarlierProcess(t *testing.T) {
	r := newNode(t)
	list := []netip.Addr{netip.MustParseAddr("10.50.0.60"), netip.MustParseAddr("fd00:50::60")}
	r.assign(list...)
	r.step(t, true)

	r = newProcess(t)
	if err := r.find(); err != nil || len(r.found) != len(list) {
		t.Fatalf("found %v (%v), want %v", r.found, err, list)
	}
	r.assign(list[0])
	r.step(t, true)
	if now := addrs(t); len(r.failed) > 0 || !strings.Contains(now, list[0].String()) ||
		strings.Contains(now, list[1].String()) {
		t.Errorf("failed %v:\n%s", r.failed, now)
	}
}

// The kernel refuses an address that another program has added since the interfaces were read.
func TestAddressAddedMeanwhile(t *testing.T) {
	r := newNode(t)
	list := []netip.Addr{netip.MustParseAddr("10.50.0.60"), netip.MustParseAddr("fd00:50::60")}
	r.assign(list...)
	if _, err := r.readLinks(); err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		ip(t, append([]string{"addr", "add", "dev", segment}, others()[a]...)...)
	}
	before := addrs(t)
	r.apply(true)
	for _, a := range list {
		if !strings.Contains(r.failed[a], "file exists") {
			t.Errorf("%s: %q", a, r.failed[a])
		}
	}
	if now := addrs(t); now != before {
		t.Errorf("addresses:\n%swant:\n%s", now, before)
	}
}

// The kernel removes all IPv6 addresses of an interface whose MTU falls below 1280. The agent reports that those that
// the node is to hold have failed, and adds them again as soon as the kernel accepts them.
func TestAddressThatIsLostLater(t *testing.T) {
	r := newNode(t)
	list := []netip.Addr{netip.MustParseAddr("10.50.0.60"), netip.MustParseAddr("fd00:50::60")}
	r.assign(list...)
	r.step(t, true)
	if len(r.failed) > 0 {
		t.Fatal(r.failed)
	}
	ip(t, "link", "set", segment, "mtu", "1279")
	for _, renew := range []bool{false, true} {
		r.step(t, renew)
		if len(r.failed) != 1 || r.failed[list[1]] == "" {
			t.Errorf("without IPv6: failed %v", r.failed)
		}
	}
	ip(t, "link", "set", segment, "mtu", "1500")
	r.step(t, false)
	if len(r.failed) > 0 || r.count() != len(list) {
		t.Errorf("with IPv6 again: %d are held, failed %v", r.count(), r.failed)
	}
}
