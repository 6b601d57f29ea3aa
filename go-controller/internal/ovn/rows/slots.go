// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"container/heap"
	"slices"
)

// Slots assigns backends to the slots of a load balancer. have are the existing slots. want are the current backends,
// without duplicates; their order only determines where new ones are placed.
//
// OVS picks a slot of a select group by hashing a connection with the slot's index, so after a failover a connection
// finds its backend again only if that backend still has the same slot. Therefore a kept backend stays in its slot.
// The slot of a removed backend is overwritten in place by a new backend, or by a second slot of a current one. Further
// new backends are appended, and empty slots at the end are removed. Once more than half of the slots would be
// duplicates, the list is compacted.
func Slots[T comparable](have, want []T) []T {
	if len(want) == 0 {
		return nil
	}
	alive := make(map[T]int, len(want)) // number of slots per backend
	for _, b := range want {
		alive[b] = 0
	}
	slots := slices.Clone(have)
	var holes []int
	for i, b := range slots {
		if n, ok := alive[b]; ok {
			alive[b] = n + 1
		} else {
			holes = append(holes, i)
		}
	}
	var fresh []T
	for _, b := range want {
		if alive[b] == 0 {
			alive[b] = 1
			fresh = append(fresh, b)
		}
	}
	for len(holes) > 0 && len(fresh) > 0 {
		slots[holes[0]] = fresh[0]
		holes, fresh = holes[1:], fresh[1:]
	}
	slots, fresh = replaceDuplicates(slots, fresh, alive, len(holes) == 0)
	slots = append(slots, fresh...)
	for len(holes) > 0 && holes[len(holes)-1] == len(slots)-1 {
		slots, holes = slots[:len(slots)-1], holes[:len(holes)-1]
	}
	if len(slots) > 2*len(want) {
		return compact(slots, holes)
	}
	if len(holes) == 0 {
		return slots
	}
	least := make(byCount, len(want))
	for i, b := range want {
		least[i] = counted{alive[b], i}
	}
	heap.Init(&least)
	for _, i := range holes {
		slots[i] = want[least[0].index]
		least[0].count++
		heap.Fix(&least, 0)
	}
	return slots
}

// counted is the number of slots of the backend at an index of the wanted ones.
type counted struct{ count, index int }

// byCount is a heap whose first element has the fewest slots, and of those the lowest index. Its length stays the same.
type byCount []counted

func (c byCount) Len() int      { return len(c) }
func (c byCount) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c byCount) Push(any)      {}
func (c byCount) Pop() any      { return nil }
func (c byCount) Less(i, j int) bool {
	return c[i].count < c[j].count || c[i].count == c[j].count && c[i].index < c[j].index
}

// replaceDuplicates assigns slots that only repeat a backend to new backends.
func replaceDuplicates[T comparable](slots, fresh []T, count map[T]int, full bool) (filled, rest []T) {
	if !full {
		return slots, fresh
	}
	for i := len(slots) - 1; i >= 0 && len(fresh) > 0; i-- {
		if count[slots[i]] > 1 {
			count[slots[i]]--
			slots[i], fresh = fresh[0], fresh[1:]
		}
	}
	return slots, fresh
}

// compact keeps the first slot of each backend, in order.
func compact[T comparable](slots []T, holes []int) []T {
	seen := make(map[T]bool, len(slots))
	var out []T
	for i, b := range slots {
		if len(holes) > 0 && holes[0] == i {
			holes = holes[1:]
		} else if !seen[b] {
			seen[b] = true
			out = append(out, b)
		}
	}
	return out
}
