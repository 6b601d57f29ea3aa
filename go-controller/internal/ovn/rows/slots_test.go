// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the goldens")
	os.Exit(m.Run())
}

func TestSlots(t *testing.T) {
	for _, c := range []struct{ what, have, want, slots string }{
		{"new", "", "a b c", "a b c"},
		{"same", "c a b", "a b c", "c a b"},
		{"replaced in place", "a b c", "a c d", "a d c"},
		{"two replaced in place", "a b c d", "a d e f", "a e f d"},
		{"appended", "a b", "a b c", "a b c"},
		{"replaced and appended", "a b", "a c d", "a c d"},
		{"last one cut", "a b c", "a b", "a b"},
		{"all at the end cut", "a b c d", "a b", "a b"},
		{"hole filled by repeating", "a b c", "a c", "a a c"},
		{"the one with fewest slots repeats", "a a b c", "a c", "a a c c"},
		{"a repeated one makes room for a new one", "a a c", "a c d", "a d c"},
		{"a hole first, then a second slot", "a a b c", "a c d", "a a d c"},
		{"a second slot stays", "a a c", "a c", "a a c"},
		{"packed at more than half", "a b c d e", "b e", "b e"},
		{"packed without holes", "a a a b", "a", "a"},
		{"none left", "a b", "", ""},
		{"all replaced", "a b", "c d", "c d"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := strings.Join(rows.Slots(strings.Fields(c.have), strings.Fields(c.want)), " "); got != c.slots {
				t.Errorf("[%s] with backends [%s]: [%s], want [%s]", c.have, c.want, got, c.slots)
			}
		})
	}
}

// For any history, the slots contain exactly the living backends, are bounded in number, and are sticky and stable.
func FuzzSlots(f *testing.F) {
	f.Add("abc", "acd")
	f.Add("aabbc", "c")
	f.Add("", "zyx")
	f.Fuzz(func(t *testing.T, before, now string) {
		have, want := []byte(before), []byte(now)
		slices.Sort(want)
		want = slices.Compact(want)
		slots := rows.Slots(have, want)
		held := slices.Compact(slices.Sorted(slices.Values(slots)))
		if !slices.Equal(held, want) {
			t.Fatalf("%q with backends %q: %q", have, want, slots)
		}
		if len(slots) > 2*len(want) {
			t.Errorf("%q with backends %q: %q has too many slots", have, want, slots)
		}
		if again := rows.Slots(slots, want); !slices.Equal(again, slots) {
			t.Errorf("%q with backends %q: %q, then %q", have, want, slots, again)
		}
		if len(slots) > len(want) || len(have) <= 2*len(want) {
			keepsSlots(t, have, want, slots)
		}
	})
}

// keepsSlots checks that each living backend still has one of its previous slots.
func keepsSlots(t *testing.T, have, want, slots []byte) {
	t.Helper()
	for _, b := range want {
		kept := !slices.Contains(have, b)
		for i := range min(len(have), len(slots)) {
			kept = kept || have[i] == b && slots[i] == b
		}
		if !kept {
			t.Errorf("%q with backends %q: %q moved %q", have, want, slots, b)
		}
	}
}
