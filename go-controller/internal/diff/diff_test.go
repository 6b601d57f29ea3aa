// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"cmp"
	"maps"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/diff"
)

func equal(a, b string) bool { return a == b }

func TestMaps(t *testing.T) {
	have := map[int]string{1: "same", 2: "old", 3: "gone", 9: "gone too"}
	want := map[int]string{1: "same", 2: "new", 5: "five", 4: "four"}
	got := diff.Maps(have, want, cmp.Compare, equal)
	exp := diff.Changes[int, string]{
		Add:    []diff.Change[int, string]{{Key: 4, Want: "four"}, {Key: 5, Want: "five"}},
		Update: []diff.Change[int, string]{{Key: 2, Have: "old", Want: "new"}},
		Remove: []diff.Change[int, string]{{Key: 3, Have: "gone"}, {Key: 9, Have: "gone too"}},
	}
	if d := gocmp.Diff(exp, got); d != "" {
		t.Errorf("Maps (-want +got):\n%s", d)
	}
	if c := diff.Maps(want, want, cmp.Compare, equal); !c.Empty() {
		t.Errorf("equal maps differ: %+v", c)
	}
	if c := diff.Maps(nil, want, cmp.Compare, equal); c.Empty() || len(c.Add) != len(want) {
		t.Errorf("from nothing: %+v", c)
	}
}

func FuzzMapsApplied(f *testing.F) {
	f.Add([]byte{1, 'a', 2, 'b'}, []byte{2, 'c', 3, 'd'})
	f.Fuzz(func(t *testing.T, h, w []byte) {
		have, want := pairs(h), pairs(w)
		c := diff.Maps(have, want, cmp.Compare, equal)
		for _, x := range c.Remove {
			delete(have, x.Key)
		}
		for _, x := range append(c.Add, c.Update...) {
			have[x.Key] = x.Want
		}
		if !maps.Equal(have, want) {
			t.Errorf("applied: %v, want %v", have, want)
		}
	})
}

func pairs(b []byte) map[byte]string {
	m := map[byte]string{}
	for i := 0; i+1 < len(b); i += 2 {
		m[b[i]] = string(b[i+1 : i+2])
	}
	return m
}
