// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"maps"
	"slices"
)

// Change is one key that differs. Have is the zero value for a key to add, Want for a key to remove.
type Change[K comparable, V any] struct {
	Key        K
	Have, Want V
}

// Changes transforms one map into another. Each list is sorted by key.
type Changes[K comparable, V any] struct {
	Add, Update, Remove []Change[K, V]
}

// Empty reports whether there are no changes.
func (c Changes[K, V]) Empty() bool {
	return len(c.Add) == 0 && len(c.Update) == 0 && len(c.Remove) == 0
}

// Maps returns the changes that make have equal to want. cmp must be a total order of the keys; equal compares whole
// values.
func Maps[K comparable, V any](have, want map[K]V, cmp func(K, K) int, equal func(V, V) bool) Changes[K, V] {
	var c Changes[K, V]
	for _, k := range sortedKeys(want, cmp) {
		w := want[k]
		h, there := have[k]
		switch {
		case !there:
			c.Add = append(c.Add, Change[K, V]{Key: k, Want: w})
		case !equal(h, w):
			c.Update = append(c.Update, Change[K, V]{Key: k, Have: h, Want: w})
		}
	}
	for _, k := range sortedKeys(have, cmp) {
		if _, stays := want[k]; !stays {
			c.Remove = append(c.Remove, Change[K, V]{Key: k, Have: have[k]})
		}
	}
	return c
}

func sortedKeys[K comparable, V any](m map[K]V, cmp func(K, K) int) []K {
	return slices.SortedFunc(maps.Keys(m), cmp)
}
