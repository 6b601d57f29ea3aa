// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A list of source ranges that is too long is not read, so explain says nothing about the families in it.
func TestTooManyListedSourceRanges(t *testing.T) {
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(base, &txtar.Archive{})
	if err != nil {
		t.Fatal(err)
	}
	var ranges []string
	for i := range world.MaxListedRanges + 1 {
		ranges = append(ranges, fmt.Sprintf("192.%d.%d.0/24", i/256, i%256))
	}
	s.Service(s.question.Service).Spec.LoadBalancerSourceRanges = ranges
	for range passes {
		s.pass()
	}
	const want = "clients                 TooManySourceRanges: no client is admitted, because " +
		"spec.loadBalancerSourceRanges lists 10001 ranges, more than the limit of 10000\n"
	if got := Explain(s.Objects, s.question).Text(Plain, 0); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant %q", got, want)
	}
}
