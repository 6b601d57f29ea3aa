// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Claim is what a namespace needs of a limit that it shares with others. It is granted as a whole or not at all.
type Claim[K comparable] struct {
	Namespace string
	// Key identifies what is claimed. Claims of several namespaces with the same key are granted together, for one cost.
	Key  K
	Cost int
	// Current means that it is granted now.
	Current bool
}

// Divide returns the keys of the claims that are granted, which cost at most the limit together, and the share of a
// namespace: the largest such that all namespaces get at most the limit if none gets more.
//
// A namespace that needs no more than the share gets all that it needs. The others get what fits into the share, and
// then what is left of the limit, which may be most of it because claims are indivisible. In a namespace, current
// claims come first. Otherwise, claims come in their order, in which no namespace has a key twice.
//
// One claim more than the limit withdraws what it exceeds the limit by, and at most one claim beyond that. What is left
// goes to the namespaces that have least with it, counted in whole shares, in which namespaces take turns and current
// claims come first: changes of costs that are smaller than a share withdraw nothing in favor of others.
func Divide[K comparable](claims []Claim[K], limit int) (granted map[K]bool, share int) {
	needs := map[string]int{}
	for _, c := range claims {
		needs[c.Namespace] += c.Cost
	}
	share, granted = fairShare(needs, limit), map[K]bool{}
	grant := func(c Claim[K]) {
		if !granted[c.Key] {
			granted[c.Key] = true
			limit -= c.Cost
		}
	}
	used, exceeds := map[string]int{}, map[string]bool{}
	var others []Claim[K]
	for _, current := range []bool{true, false} {
		for _, c := range claims {
			switch {
			case c.Current != current:
			case used[c.Namespace]+c.Cost > share, !current && exceeds[c.Namespace]:
				// Nothing new is granted within the share in place of what is current.
				exceeds[c.Namespace] = exceeds[c.Namespace] || current
				others = append(others, c)
			default:
				used[c.Namespace] += c.Cost
				grant(c)
			}
		}
	}
	for _, c := range inTurns(others, used, share) {
		if granted[c.Key] || c.Cost <= limit {
			grant(c)
		}
	}
	return granted, share
}

// inTurns sorts claims beyond the share of namespaces by the whole shares that a namespace uses with them, and then by
// the turns of namespaces.
func inTurns[K comparable](claims []Claim[K], used map[string]int, share int) []Claim[K] {
	type ranked struct {
		claim        Claim[K]
		shares, turn int
	}
	list, turns := make([]ranked, len(claims)), map[string]int{}
	for i, c := range claims {
		used[c.Namespace] += c.Cost
		turns[c.Namespace]++
		list[i] = ranked{c, used[c.Namespace] / (share + 1), turns[c.Namespace]}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Or(a.shares-b.shares, a.turn-b.turn) })
	for i, r := range list {
		claims[i] = r.claim
	}
	return claims
}

// fairShare returns the largest share such that no namespace gets more, those that need less get what they need and
// all together get at most total.
func fairShare(needs map[string]int, total int) int {
	ascending := slices.Sorted(maps.Values(needs))
	for i, need := range ascending {
		share := total / (len(ascending) - i)
		if need > share {
			return share
		}
		total -= need
	}
	return total
}
