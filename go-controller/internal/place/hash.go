// SPDX-License-Identifier: Apache-2.0

package place

import "net/netip"

// The placement hash is 64-bit FNV-1a over
//
//	domain name, 0x00, shard index (4 bytes, big endian), member
//
// finalized by the 64-bit mixer of MurmurHash3, because the last bytes, in which neighbouring addresses differ,
// affect only some bits of FNV-1a. The member is an address in 16 bytes (IPv4 as ::ffff:a.b.c.d) or the name of a
// node. The shard with the largest hash has the address. A change to this function would move VIPs on every upgrade;
// testdata/hash.txtar pins it.

const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

func fnv[T string | []byte](h uint64, data T) uint64 {
	for i := range len(data) {
		h = (h ^ uint64(data[i])) * fnvPrime
	}
	return h
}

// seed returns the part of the hash that is common to all members of a shard.
func seed(domain string, index int) uint64 {
	i := uint32(index)
	return fnv(fnv(fnvOffset, domain), []byte{0, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
}

func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// shardFor returns the index of the shard that an address is in.
func shardFor(seeds []uint64, a netip.Addr) int {
	member := a.As16()
	best, most := 0, uint64(0)
	for i, s := range seeds {
		if h := mix(fnv(s, member[:])); h > most {
			best, most = i, h
		}
	}
	return best
}
