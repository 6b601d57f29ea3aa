// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// A Service is pending until a real ovn-northd has translated its rows, also for a process that starts meanwhile.
func TestServicesArePendingUntilTheyAreTranslated(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	_, northd := startNorthd(t, nb, sb)
	translated := make(chan []world.Key, 100)
	options := Options{NB: Endpoint{Address: "unix:" + nb.socket}, SB: Endpoint{Address: "unix:" + sb.socket},
		Translated: func(keys []world.Key) { translated <- keys }}
	awaitTranslated := func(want ...world.Key) {
		t.Helper()
		for len(want) > 0 {
			keys := await.Receive(t, fmt.Sprintf("%v are translated", want), translated)
			want = slices.DeleteFunc(want, func(k world.Key) bool { return slices.Contains(keys, k) })
		}
	}
	d, _ := connect(t, options)
	one, two := service(1, 1, "10.244.1.1"), service(2, 1, "10.244.1.1")
	configure(t, d, topology(1))
	apply(t, d, one)
	nb.sync(t)
	await.True(t, "the Service is not pending", func() bool { return d.Pending(one.Key).IsZero() })
	if !strings.Contains(sb.sbctl(t, "lflow-list"), "10.50.1.1") {
		t.Error("it has no flow")
	}

	signal := func(s syscall.Signal) {
		t.Helper()
		if err := northd.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	apply(t, d, one, two)
	for _, p := range []*plan.Service{one, two} { // whether that of the first one was written is not known
		if d.Pending(p.Key).IsZero() {
			t.Errorf("%s is not pending, although ovn-northd stands still", p.Key)
		}
	}
	since := d.Pending(two.Key)
	apply(t, d, service(2, 1, "10.244.1.1", "10.244.1.2"))
	if is := d.Pending(two.Key); !is.Equal(since) || !d.Stalled().Equal(d.Pending(one.Key)) {
		t.Errorf("pending since %v, was %v", is, since)
	}
	for len(translated) > 0 { // of the first Service
		<-translated
	}
	written := nb.transactions(t)
	restarted, _ := connect(t, options)
	configure(t, restarted, topology(1))
	apply(t, restarted, one, service(2, 1, "10.244.1.1", "10.244.1.2"))
	if restarted.Pending(two.Key).IsZero() || nb.transactions(t) != written {
		t.Errorf("after a restart: pending since %v, %d transactions", restarted.Pending(two.Key),
			nb.transactions(t)-written)
	}
	signal(syscall.SIGCONT)
	awaitTranslated(one.Key, two.Key)
	for _, process := range []*Dataplane{d, restarted} {
		await.True(t, "no Service is pending", func() bool {
			return process.Pending(one.Key).IsZero() && process.Stalled().IsZero()
		})
	}
	apply(t, d, one)
	if !d.Pending(one.Key).IsZero() {
		t.Error("pending although nothing was written")
	}
}

// Another client that deletes the number, or lowers it, does not keep Services pending. Without shards there is none.
func TestTheRevisionIsRestored(t *testing.T) {
	t.Parallel()
	nb, sb := serve(t, schema), serve(t, southboundSchema)
	nb.clusterRows(t)
	sb.sbctl(t, "init")
	_, northd := startNorthd(t, nb, sb)
	d, events := dial(t, nb, sb)
	one := service(1, 1, "10.244.1.1")
	configure(t, d, topology(1))
	apply(t, d, one)
	set := func() string {
		return nb.nbctl(t, "--bare", "--columns=addresses", "find", "Address_Set", "name="+rows.RevisionSet)
	}
	first := set()
	for name, edit := range map[string][]string{
		"deleted": {"destroy", "Address_Set", rows.RevisionSet},
		"lowered": {"set", "Address_Set", rows.RevisionSet, `addresses=["::1"]`},
	} {
		drain(events)
		nb.nbctl(t, edit...)
		waitFor(t, events, Rows)
		configure(t, d, topology(1))
		if is := set(); rows.ParseRevision([]string{is}) <= rows.ParseRevision([]string{first}) {
			t.Errorf("%s: the number is %s, was %s", name, is, first)
		}
		apply(t, d, service(1, 1, "10.244.1.1", "10.244.1.2"))
		apply(t, d, one)
		await.True(t, "the Service is not pending", func() bool { return d.Pending(one.Key).IsZero() })
	}
	if err := northd.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	apply(t, d, service(1, 1, "10.244.1.1", "10.244.1.2"))
	if d.Pending(one.Key).IsZero() {
		t.Error("the Service is not pending, although ovn-northd stands still")
	}
	bare := topology(1)
	bare.Domains[0].Shards[0].Anchors = nil
	configure(t, d, bare)
	if is := d.Stalled(); !is.IsZero() {
		t.Errorf("without shards, pending since %v", is)
	}
	remove(t, d, one)
	prune(t, d)
	if is := set(); is != "" {
		t.Errorf("the number is left: %s", is)
	}
	if err := northd.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	nb.sync(t)
	if is := d.Stalled(); !is.IsZero() {
		t.Errorf("after all, pending since %v", is)
	}
}

func TestRevisionsAreAddresses(t *testing.T) {
	for _, number := range []uint64{1, 0xffff, 0x1234_5678_9abc} {
		addresses, _ := rows.Revision(number).Columns["addresses"].([]string)
		if got := rows.ParseRevision(append(addresses, "::", "192.0.2.1", "none")); got != number {
			t.Errorf("%d: %s is %d", number, addresses, got)
		}
	}
}
