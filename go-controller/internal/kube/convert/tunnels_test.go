// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestTunnelsReport(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf("chassis-%04d", i))
	}
	for _, is := range []world.Tunnels{{}, {AllDown: 7}, {Down: []string{"c2", "c3"}}, {Down: many}} {
		text, err := TunnelsReport(is)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 2000 {
			t.Errorf("the report has %d bytes", len(text))
		}
		is.Down = is.Down[:min(len(is.Down), maxTunnelsDown)]
		if got := readTunnels(text); !got.Equal(&is) {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}

// Any node may report anything.
func TestInvalidTunnelsAreIgnored(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "no JSON", `{"allDown":-1}`, `{"allDown":1}`, `{"allDown":"2"}`, `[]`} {
		if got := readTunnels(text); got != nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	long := strings.Repeat("c", maxForeignText+1)
	got := readTunnels(`{"down":["c2","","` + long + `","c1","c2"]}`)
	if got == nil || !slices.Equal(got.Down, []string{"c1", "c2"}) {
		t.Errorf("%+v, want c1 and c2", got)
	}
	got = readTunnels(`{"down":["` + strings.Join(strings.Split(strings.Repeat("x", 500), ""), `","`) + `"]}`)
	if got == nil || len(got.Down) != 1 {
		t.Errorf("%+v, want x once", got)
	}
}
