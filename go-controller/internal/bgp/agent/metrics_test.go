// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

func TestMetricsReportSessions(t *testing.T) {
	c := &collector{func() []speaker.State {
		return []speaker.State{
			{Peer: "spine", Phase: speaker.Active, Updates: 9},
			{Peer: "tor", Phase: speaker.Established, IPv4: 3, IPv6: 2, Updates: 7, BFD: "Up"},
		}
	}}
	samples := `# TYPE ovnkube_slb_bfd_session_up gauge
ovnkube_slb_bfd_session_up{peer="tor"} 1
# TYPE ovnkube_slb_bgp_announced_prefixes gauge
ovnkube_slb_bgp_announced_prefixes{family="IPv4",peer="spine"} 0
ovnkube_slb_bgp_announced_prefixes{family="IPv6",peer="spine"} 0
ovnkube_slb_bgp_announced_prefixes{family="IPv4",peer="tor"} 3
ovnkube_slb_bgp_announced_prefixes{family="IPv6",peer="tor"} 2
# TYPE ovnkube_slb_bgp_session_up gauge
ovnkube_slb_bgp_session_up{peer="spine"} 0
ovnkube_slb_bgp_session_up{peer="tor"} 1
# TYPE ovnkube_slb_bgp_updates_total counter
ovnkube_slb_bgp_updates_total{peer="spine"} 9
ovnkube_slb_bgp_updates_total{peer="tor"} 7
`
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		samples = strings.Replace(samples, "# TYPE "+f.GetName()+" ", fmt.Sprintf("# HELP %s %s\n# TYPE %[1]s ", f.GetName(),
			f.GetHelp()), 1)
		named, said := fmt.Sprintf("| `%s` | %s |", f.GetName(), strings.ToLower(f.GetType().String())),
			fmt.Sprintf("| %s |\n", f.GetHelp())
		documented := false
		for line := range strings.Lines(string(docs)) {
			documented = documented || strings.HasPrefix(line, named) && strings.HasSuffix(line, said)
		}
		if !documented {
			t.Errorf("docs/metrics.md has no line %s ... %s", named, said)
		}
	}
	if err := testutil.CollectAndCompare(c, strings.NewReader(samples)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}
