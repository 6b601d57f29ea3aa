// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// conflictReports are the reports of an addressProber on a segment whose hosts a test simulates.
type conflictReports struct {
	*addressProber
	mu        sync.Mutex // a read of the test does not happen before the next report
	completed []string
	conflicts map[netip.Addr]convert.ConflictReport
	n         int
}

// newConflictReports runs an addressProber. asked is called for each probe.
func newConflictReports(ctx context.Context, asked func(p *conflictReports, a netip.Addr)) *conflictReports {
	networks := map[string]ovn.Uplinks{"physnet": {Links: []ovn.Uplink{{Name: "eth1"}}}}
	p := &conflictReports{}
	p.addressProber = newAddressProber(func() (map[string]ovn.Uplinks, bool) { return networks, true },
		func(found map[netip.Addr]convert.ConflictReport, completed []string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.conflicts, p.completed, p.n = found, completed, p.n+1
		})
	p.metrics, _ = newMetrics(nil)
	p.ask = func(_ context.Context, a netip.Addr, _ string, _ int) (sent, paused bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		asked(p, a)
		return true, false
	}
	go p.run(ctx)
	return p
}

// answer sends an answer for an address after a time.
func (p *conflictReports) answer(ctx context.Context, a netip.Addr, after time.Duration) {
	time.AfterFunc(after, func() {
		select {
		case p.received <- receivedAnswer{"eth1", neighbour.Answer{Addr: a, MAC: "02:00:00:00:00:01"}}:
		case <-ctx.Done():
		}
	})
}

// request sends the prober a Lease with probe requests, by ID.
func (p *conflictReports) request(t *testing.T, byID map[string][]netip.Addr) {
	t.Helper()
	var requests []map[string]any
	for id, addrs := range byID {
		requests = append(requests, map[string]any{"id": id, "network": "physnet", "addresses": addrs})
	}
	text, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	p.leases <- &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{v1alpha1.AnnotationAddressProbes: string(text)}}}
}

// addresses returns n addresses.
func addresses(n int) []netip.Addr {
	var out []netip.Addr
	for i := range n {
		out = append(out, netip.MustParseAddr(fmt.Sprintf("10.50.%d.%d", i/200, 1+i%200)))
	}
	return out
}

// A host that takes and releases addresses again and again causes no more reports than one that does it once: each is
// a write, and a decision of the controller.
func TestReportsOfAHostThatComesAndGoesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silence := map[netip.Addr]int{}
		addrs := addresses(200)
		p := newConflictReports(t.Context(), func(p *conflictReports, a netip.Addr) {
			if silence[a]++; silence[a]%probeNum == 0 { // it answers once the silence has counted
				p.answer(t.Context(), a, conflictProbeInterval+time.Duration(1+20*slices.Index(addrs, a))*time.Millisecond)
			}
		})
		p.request(t, map[string][]netip.Addr{"1-1": addrs})
		<-time.After(time.Minute)
		synctest.Wait()
		p.mu.Lock()
		if p.n > 15 || p.n < 5 {
			t.Errorf("%d reports in a minute, want one every 5 s", p.n)
		}
		p.mu.Unlock()
		p.request(t, nil)
		<-time.After(time.Minute)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.conflicts) > 0 {
			t.Errorf("at last, reported %v; want no conflict", p.conflicts)
		}
	})
}

// A Service waits for the result of its request. Neither that nor the conflict that keeps its address is delayed
// because of earlier reports.
func TestResultOfARequestIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addrs := addresses(4)
		contested := map[netip.Addr]bool{addrs[1]: true}
		p := newConflictReports(t.Context(), func(p *conflictReports, a netip.Addr) {
			if contested[a] {
				p.answer(t.Context(), a, time.Millisecond)
			}
		})
		start := time.Now()
		requests := map[string][]netip.Addr{}
		expect := func(what string, after time.Duration, completed []string, conflicts int) {
			t.Helper()
			<-time.After(time.Until(start.Add(after)))
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if !slices.Equal(p.completed, completed) || len(p.conflicts) != conflicts {
				t.Errorf("%s: reported %v completed, %v; want %v and %d conflicts", what, p.completed, p.conflicts,
					completed, conflicts)
			}
		}
		requests["1"] = addrs[:1]
		p.request(t, requests)
		expect("a request of which nothing is known", 0, nil, 0)
		expect("no host answers", 750*time.Millisecond, []string{"1"}, 0)
		requests["2"] = addrs[1:3]
		p.request(t, requests)
		expect("a host has one of two addresses", 751*time.Millisecond, []string{"1"}, 1)
		p.answer(t.Context(), addrs[2], 99*time.Millisecond)
		expect("another host has the other", 850*time.Millisecond, []string{"1", "2"}, 2)
		p.answer(t.Context(), addrs[0], 0)
		expect("the first conflict of a completed request", 850*time.Millisecond, []string{"1", "2"}, 3)
		p.mu.Lock()
		n := p.n
		delete(contested, addrs[1])
		p.mu.Unlock()
		expect("all hosts are gone", 5849*time.Millisecond, []string{"1", "2"}, 3)
		expect("this is reported after 5 s", 5850*time.Millisecond, []string{"1", "2"}, 0)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.n != n+1 {
			t.Errorf("%d reports for that, want one", p.n-n)
		}
	})
}

// An address of a request that is not completed, because others can't be probed, is announced after 5 s unless its
// conflict is known by then.
func TestConflictOfAnOpenRequestIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addrs := addresses(3)
		p := newConflictReports(t.Context(), func(p *conflictReports, a netip.Addr) {
			if a != addrs[2] {
				p.answer(t.Context(), a, time.Duration(slices.Index(addrs, a))*10*time.Millisecond)
			}
		})
		p.request(t, map[string][]netip.Addr{"1": addrs})
		<-time.After(10 * time.Millisecond)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.conflicts) != 2 || len(p.completed) != 0 {
			t.Errorf("reported %v, %v completed; want two conflicts of a request that is not", p.conflicts, p.completed)
		}
	})
}
