// SPDX-License-Identifier: Apache-2.0

package place

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"net/netip"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// backend is an endpoint as the return path tells it from others.
type backend struct {
	hi, lo      uint64 // address
	port, proto uint32
}

// backendsOf yields the backends behind an address of a Service.
func backendsOf(s *world.Service, a netip.Addr) iter.Seq[backend] {
	return func(yield func(backend) bool) {
		for _, p := range s.Ports {
			proto := number(p.Protocol)
			for e := range plan.Endpoints(s, world.FamilyOf(a), p) {
				ip := e.Addr().As16()
				b := backend{binary.BigEndian.Uint64(ip[:8]), binary.BigEndian.Uint64(ip[8:]), uint32(e.Port()), proto}
				if !yield(b) {
					return
				}
			}
		}
	}
}

// number tells protocols apart by their IANA numbers.
func number(p world.Protocol) uint32 {
	switch p {
	case world.TCP:
		return 6
	case world.UDP:
		return 17
	case world.SCTP:
		return 132
	}
	return 0
}

// census tells the backends that come once, most of all, from those that may come
// again, so that only these have to be looked at closely: there are hundreds of
// thousands in each pass, and these two bitmaps fit where a map of them does not.
type census struct {
	once, twice []uint64
	shift       int
}

// newCensus expects about n backends and has sixteen bits for each.
func newCensus(n int) *census {
	width := max(6, bits.Len(uint(16*n)))
	return &census{once: make([]uint64, 1<<(width-6)), twice: make([]uint64, 1<<(width-6)), shift: 64 - width}
}

func (c *census) bit(b backend) (word int, mask uint64) {
	h := mix(b.hi^mix(b.lo^uint64(b.proto)<<32^uint64(b.port)<<40)) >> c.shift
	return int(h >> 6), 1 << (h & 63)
}

func (c *census) count(b backend) {
	word, mask := c.bit(b)
	c.twice[word] |= c.once[word] & mask
	c.once[word] |= mask
}

// new reports whether a backend was surely never counted.
func (c *census) new(b backend) bool {
	word, mask := c.bit(b)
	return c.once[word]&mask == 0
}

// again reports whether a backend that was counted may have come twice or more often.
func (c *census) again(b backend) bool {
	word, mask := c.bit(b)
	return c.twice[word]&mask != 0
}
