// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// number is an address of either family as an unsigned integer. Arithmetic on it must be cheap, because a large
// cluster has hundreds of thousands of backends.
type number struct{ high, low uint64 }

func numberOf(a netip.Addr) number {
	if a.Is4() {
		raw := a.As4()
		return number{low: uint64(binary.BigEndian.Uint32(raw[:]))}
	}
	raw := a.As16()
	return number{binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])}
}

// addr returns the address of the family with the given size, 32 or 128 bits.
func (n number) addr(size int) netip.Addr {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], n.high)
	binary.BigEndian.PutUint64(raw[8:], n.low)
	if size == 32 {
		return netip.AddrFrom4([4]byte(raw[12:]))
	}
	return netip.AddrFrom16(raw)
}

func (n number) plus(m number) number {
	low, carry := bits.Add64(n.low, m.low, 0)
	high, _ := bits.Add64(n.high, m.high, carry)
	return number{high, low}
}

func (n number) and(m number) number    { return number{n.high & m.high, n.low & m.low} }
func (n number) andNot(m number) number { return number{n.high &^ m.high, n.low &^ m.low} }

// shl shifts n to the left by less than 64 bits.
func (n number) shl(by int) number { return number{n.high<<by | n.low>>(64-by), n.low << by} }

// ones returns a number with the lowest count bits set, up to 128.
func ones(count int) number {
	if count >= 64 {
		return number{1<<(count-64) - 1, 1<<64 - 1}
	}
	return number{low: 1<<count - 1}
}
