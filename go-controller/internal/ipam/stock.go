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

// choice is how many free addresses are looked at to find one of a shard that carries
// little.
const choice = 16

// stock is what a pool has of one family. A cursor goes over it once a pass and never
// back; those that it passed and that are still free are in the window.
type stock struct {
	// spans are the addresses that may be given, in the order in which the pool lists
	// them; a buggy one is passed over if avoidBuggy is set.
	spans      []netipx.IPRange
	avoidBuggy bool
	// size counts the addresses that may be given, used those of them that are in use or
	// rest, resting the latter; the first of these does so until firstEnd. Kept counts those
	// that may be given to the Service only that they wait for.
	size, used, resting, kept int64
	firstEnd                  time.Time

	span   int
	next   netip.Addr
	window []candidate
}

// candidate is a free address; load counts the addresses of its shard.
type candidate struct {
	addr netip.Addr
	load *int
}

func (s *stock) add(r netipx.IPRange, avoidBuggy bool) {
	n := size(r)
	if avoidBuggy {
		n -= buggyIn(r)
	}
	s.spans = append(s.spans, r)
	s.avoidBuggy = avoidBuggy
	s.size = plus(s.size, n)
}

// free counts the addresses that are left; of those that can't be counted, none goes.
func (s *stock) free() int64 {
	if s.size == math.MaxInt64 {
		return s.size
	}
	return s.size - s.used
}

func (s *stock) counts(p *pool, f world.Family) string {
	text := fmt.Sprintf("pool %q: %d of %d %s addresses are free", p.Name, s.free(), s.size, f)
	if s.resting > 0 {
		// How many rest is not said: each deletion would change what all who wait are told.
		text += fmt.Sprintf(", and some rest until %s or longer (spec.reuseDelay)", instant(s.firstEnd))
	}
	return text
}

// instant spells a time for messages, to the second.
func instant(t time.Time) string { return ceil(t).UTC().Format(time.RFC3339) }

// step returns the address under the cursor and moves on; false at the end.
func (s *stock) step() (netip.Addr, bool) {
	for s.span < len(s.spans) {
		r := s.spans[s.span]
		if !s.next.IsValid() {
			s.next = r.From()
		}
		a := s.next
		if a == r.To() {
			s.span++
			s.next = netip.Addr{}
		} else {
			s.next = a.Next()
		}
		if s.avoidBuggy && buggy(a) {
			continue
		}
		return a, true
	}
	return netip.Addr{}, false
}

// draw finds a free address: of the first few, the one whose shard carries the fewest
// addresses, and of those the first.
func (l *ledger) draw(s *stock, pool string) (netip.Addr, bool) {
	for len(s.window) < choice {
		a, ok := s.step()
		if !ok {
			break
		}
		if !l.taken(a) && l.rests[a] == nil {
			s.window = append(s.window, candidate{a, l.loadOf(pool, a)})
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

// rest counts one of the addresses that may be given as at rest.
func (s *stock) rest(a netip.Addr, until time.Time) {
	s.use(a)
	s.resting++
	if s.firstEnd.IsZero() || until.Before(s.firstEnd) {
		s.firstEnd = until
	}
}

// use counts one of the addresses that may be given as in use.
func (s *stock) use(a netip.Addr) {
	s.used++
	if i := slices.IndexFunc(s.window, func(c candidate) bool { return c.addr == a }); i >= 0 {
		s.window = slices.Delete(s.window, i, i+1)
	}
}
