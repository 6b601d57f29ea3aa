// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// maxLast is the number of listed addresses (world.Listed) of a free list that are drawn after all others, and of those
// in prefixes of long lists. Further ones are drawn as if they were not listed: a prefix may be as large as the pool.
const maxLast = 10_000

// drawWindow is the number of free addresses that draw examines to find one in a shard with few addresses.
const drawWindow = 16

// freeList has the addresses of one family of a pool. A cursor passes over it once per pass, in one direction. window
// has the addresses that the cursor passed and that are still free, except for those in last, which are drawn last.
type freeList struct {
	// spans are the addresses that may be allocated, in the order in which the pool lists them. Buggy addresses are
	// skipped if avoidBuggy is set.
	spans      []netipx.IPRange
	avoidBuggy bool
	// size counts the addresses that may be allocated, used those of them that are in use or in cooldown, coolingDown
	// those in cooldown. firstEnd is when the first cooldown ends. kept counts the addresses that are reserved for one
	// Service, keptUsed those of them that are in use.
	size, used, coolingDown, kept, keptUsed int64
	firstEnd                                time.Time

	span   int
	next   netip.Addr
	window []candidate
	last   []netip.Addr
	// exact are those of them that are known to be listed themselves, which come after last.
	exact []netip.Addr
}

// candidate is a free address. load counts the addresses of its shard.
type candidate struct {
	addr netip.Addr
	load *int
}

func (fl *freeList) add(r netipx.IPRange, avoidBuggy bool) {
	n := size(r)
	if avoidBuggy {
		n -= buggyIn(r)
	}
	fl.spans = append(fl.spans, r)
	fl.avoidBuggy = avoidBuggy
	fl.size = plus(fl.size, n)
}

// free returns the number of free addresses. A size at the largest int64 never decreases.
func (fl *freeList) free() int64 {
	if fl.size == math.MaxInt64 {
		return fl.size
	}
	return fl.size - fl.used
}

func (fl *freeList) counts(p *pool, f world.Family) string {
	text := fmt.Sprintf("pool %q: free %s addresses: %d of %d", p.Name, f, fl.free(), fl.size)
	if fl.coolingDown > 0 {
		// The number of addresses in cooldown is omitted: otherwise each deletion would change the message of every
		// pending Service.
		text += fmt.Sprintf("; others are in cooldown until %s or longer (spec.reuseDelay)", formatTime(fl.firstEnd))
	}
	return text
}

// formatTime formats a time for messages, to the second.
func formatTime(t time.Time) string { return roundUp(t).UTC().Format(time.RFC3339) }

// step returns the address under the cursor and advances the cursor. It returns false at the end.
func (fl *freeList) step() (netip.Addr, bool) {
	for fl.span < len(fl.spans) {
		r := fl.spans[fl.span]
		if !fl.next.IsValid() {
			fl.next = r.From()
		}
		a := fl.next
		if a == r.To() {
			fl.span++
			fl.next = netip.Addr{}
		} else {
			fl.next = a.Next()
		}
		if fl.avoidBuggy && buggy(a) {
			continue
		}
		return a, true
	}
	return netip.Addr{}, false
}

// draw selects a free address: among the first few, the one whose shard has the fewest addresses, and of those the
// first. An address that a Service lists without having it comes last: OVN-Kubernetes has load balancers and flows for
// it that may keep its requests from ours (docs/failures.md).
func (st *state) draw(s *freeList, pool string) (netip.Addr, bool) {
	for len(s.window) < drawWindow {
		a, ok := s.step()
		if !ok {
			break
		}
		if st.taken(a) || st.cooldowns[a] != nil {
			continue
		}
		switch {
		case len(s.exact) < maxLast && st.listed.HasExactly(a):
			s.exact = append(s.exact, a)
		case len(s.last) < maxLast && st.listed.Has(a):
			s.last = append(s.last, a)
		default:
			s.window = append(s.window, candidate{a, st.loadOf(pool, a)})
		}
	}
	for _, last := range []*[]netip.Addr{&s.last, &s.exact} {
		if len(s.window) == 0 {
			st.drawLast(s, last, pool)
		}
	}
	if len(s.window) == 0 {
		return netip.Addr{}, false
	}
	best := s.window[0]
	for _, c := range s.window[1:] {
		if *c.load < *best.load {
			best = c
		}
	}
	return best.addr, true
}

// drawLast moves the first of addresses that are drawn last to the window, which is empty at the end of the list.
func (st *state) drawLast(s *freeList, last *[]netip.Addr, pool string) {
	for ; len(s.window) < drawWindow && len(*last) > 0; *last = (*last)[1:] {
		if a := (*last)[0]; !st.taken(a) {
			s.window = append(s.window, candidate{a, st.loadOf(pool, a)})
		}
	}
}

// startCooldown counts one of the addresses that may be allocated as in cooldown.
func (fl *freeList) startCooldown(a netip.Addr, until time.Time) {
	fl.markUsed(a)
	fl.coolingDown++
	if fl.firstEnd.IsZero() || until.Before(fl.firstEnd) {
		fl.firstEnd = until
	}
}

// markUsed counts one of the addresses that may be allocated as in use.
func (fl *freeList) markUsed(a netip.Addr) {
	fl.used++
	if i := slices.IndexFunc(fl.window, func(c candidate) bool { return c.addr == a }); i >= 0 {
		fl.window = slices.Delete(fl.window, i, i+1)
	}
}
