// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestOverviewGolden(t *testing.T) {
	runScenarios(t, "testdata/overview/*.txtar", func(s *scenario) string {
		return wrong(Summarize(s.Objects, s.question.Now))
	})
}

// wrong formats what an overview reports as wrong.
func wrong(v *Overview) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %s announced\n", v.Announced, world.Count(v.Services, "Service"))
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "%s %s: %s: %s\n", f.State, f.Object, f.Reason, f.Message)
		if f.Command != "" {
			fmt.Fprintf(&b, "  %s\n", f.Command)
		}
	}
	for _, note := range v.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}
