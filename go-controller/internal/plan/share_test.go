// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// What is granted costs at most the limit. Namespaces within the share get what they need, and nothing is left that a
// claim fits into. A claim that is added withdraws what exceeds the limit and at most one claim more, and what is
// granted settles.
func FuzzDivide(f *testing.F) {
	f.Add(byte(10), []byte("\x00\x01\x02\x03\x04\x05\x06\x07\x00\x01\x02")) // one more than the limit, of cost 1
	f.Add(byte(9), []byte("\x00\x01\x02\x03\x00\x01\x02\x03\x04\x05"))
	f.Add(byte(20), []byte{0x20, 0x21, 0x22, 0x23, 0x04})
	f.Add(byte(20), []byte{0x20, 0x21, 0x22, 0x23, 0x24})
	f.Add(byte(7), []byte{0x00, 0x81, 0x80, 0x90, 0x10, 0x00, 0x10, 0x80, 0x91, 0x01, 0x11, 0x11, 0x00, 0x12})
	f.Fuzz(func(t *testing.T, limit byte, in []byte) {
		if len(in) < 2 || len(in) > 64 {
			return
		}
		var claims []plan.Claim[int]
		all, equal := 0, true
		for i, b := range in {
			c := plan.Claim[int]{Namespace: string('a' + rune(b&15)), Key: i, Cost: 1 + int(b>>4&7), Current: b>>7 == 1}
			equal = equal && c.Cost == 1
			all += c.Cost
			claims = append(claims, c)
		}
		checkGranted(t, claims, int(limit))
		passes := settle(claims, int(limit))
		if passes > len(claims) || equal && passes > 1 {
			t.Errorf("not settled after %d passes", passes)
		}
		last := claims[len(claims)-1]
		claims[len(claims)-1].Current = false
		settle(claims[:len(claims)-1], int(limit))
		if all-last.Cost > int(limit) && !equal {
			return
		}
		excess, largest, withdrawn := min(all, int(limit)+last.Cost)-int(limit), 0, 0
		granted, _ := plan.Divide(claims, int(limit))
		for _, c := range claims {
			largest = max(largest, c.Cost)
			if c.Current && !granted[c.Key] {
				withdrawn += c.Cost
			}
		}
		if withdrawn > 0 && withdrawn >= excess+largest {
			t.Errorf("%+v withdraws claims of cost %d, and exceeds the limit by %d", last, withdrawn, excess)
		}
	})
}

// settle makes the claims current that are granted until these are the same, and returns how often they were not.
func settle(claims []plan.Claim[int], limit int) int {
	for passes := range len(claims) + 1 {
		granted, _ := plan.Divide(claims, limit)
		settled := true
		for i := range claims {
			settled = settled && claims[i].Current == granted[claims[i].Key]
			claims[i].Current = granted[claims[i].Key]
		}
		if settled {
			return passes
		}
	}
	return len(claims) + 1
}

func checkGranted(t *testing.T, claims []plan.Claim[int], limit int) {
	t.Helper()
	granted, share := plan.Divide(claims, limit)
	rest, needs, gets := limit, map[string]int{}, map[string]int{}
	for _, c := range claims {
		needs[c.Namespace] += c.Cost
		if granted[c.Key] {
			gets[c.Namespace] += c.Cost
			rest -= c.Cost
		}
	}
	if rest < 0 {
		t.Errorf("limit %d is exceeded by %d", limit, -rest)
	}
	for _, c := range claims {
		if !granted[c.Key] && c.Cost <= rest {
			t.Errorf("%+v is not granted, and %d are left", c, rest)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(needs)) {
		if need := needs[namespace]; need <= max(share, limit/len(needs)) && gets[namespace] != need {
			t.Errorf("namespace %s gets %d of %d, the share is %d", namespace, gets[namespace], need, share)
		}
	}
}

// Claims of several namespaces to the same take its cost once.
func TestDivideCountsWhatIsSharedOnce(t *testing.T) {
	claims := []plan.Claim[string]{{Namespace: "a", Key: "shared", Cost: 1}, {Namespace: "b", Key: "shared", Cost: 1},
		{Namespace: "c", Key: "own", Cost: 1}, {Namespace: "c", Key: "other", Cost: 1}}
	granted, _ := plan.Divide(claims, 2)
	if len(granted) != 2 || !granted["shared"] || !granted["own"] {
		t.Errorf("granted %v", granted)
	}
}
