// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/netip"
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
			{Peer: "spine", Interface: "eth1", Phase: speaker.Active, Updates: 9, Pending: 5},
			{Peer: "leaf", Interface: "eth2", Phase: speaker.Established, Damped: true},
			{Peer: "tor", Addr: netip.MustParseAddr("192.0.2.1"), Interface: "eth0", Phase: speaker.Established, IPv4: 3,
				IPv6: 2, Updates: 7, NotificationsSent: 1, NotificationsReceived: 2, BFD: "Up", BFDFailures: 4},
		}
	}}
	samples := `# TYPE ovnkube_slb_bfd_session_down_events counter
ovnkube_slb_bfd_session_down_events{bgppeer="tor",peer="192.0.2.1"} 4
# TYPE ovnkube_slb_bfd_session_up gauge
ovnkube_slb_bfd_session_up{bgppeer="tor",peer="192.0.2.1"} 1
# TYPE ovnkube_slb_bgp_announced_prefixes_total gauge
ovnkube_slb_bgp_announced_prefixes_total{bgppeer="leaf",peer="eth2"} 0
ovnkube_slb_bgp_announced_prefixes_total{bgppeer="spine",peer="eth1"} 0
ovnkube_slb_bgp_announced_prefixes_total{bgppeer="tor",peer="192.0.2.1"} 5
# TYPE ovnkube_slb_bgp_notifications_received counter
ovnkube_slb_bgp_notifications_received{bgppeer="leaf",peer="eth2"} 0
ovnkube_slb_bgp_notifications_received{bgppeer="spine",peer="eth1"} 0
ovnkube_slb_bgp_notifications_received{bgppeer="tor",peer="192.0.2.1"} 2
# TYPE ovnkube_slb_bgp_notifications_sent counter
ovnkube_slb_bgp_notifications_sent{bgppeer="leaf",peer="eth2"} 0
ovnkube_slb_bgp_notifications_sent{bgppeer="spine",peer="eth1"} 0
ovnkube_slb_bgp_notifications_sent{bgppeer="tor",peer="192.0.2.1"} 1
# TYPE ovnkube_slb_bgp_pending_prefixes_total gauge
ovnkube_slb_bgp_pending_prefixes_total{bgppeer="leaf",peer="eth2"} 0
ovnkube_slb_bgp_pending_prefixes_total{bgppeer="spine",peer="eth1"} 5
ovnkube_slb_bgp_pending_prefixes_total{bgppeer="tor",peer="192.0.2.1"} 0
# TYPE ovnkube_slb_bgp_session_up gauge
ovnkube_slb_bgp_session_up{bgppeer="leaf",peer="eth2"} 0
ovnkube_slb_bgp_session_up{bgppeer="spine",peer="eth1"} 0
ovnkube_slb_bgp_session_up{bgppeer="tor",peer="192.0.2.1"} 1
# TYPE ovnkube_slb_bgp_updates_total counter
ovnkube_slb_bgp_updates_total{bgppeer="leaf",peer="eth2"} 0
ovnkube_slb_bgp_updates_total{bgppeer="spine",peer="eth1"} 9
ovnkube_slb_bgp_updates_total{bgppeer="tor",peer="192.0.2.1"} 7
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
}
