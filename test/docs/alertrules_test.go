// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

// alertRule is a rule of dist/monitoring/alerts.yaml.
type alertRule struct {
	Alert       string            `json:"alert"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// readAlerts reads the rules of dist/monitoring and writes them as a file of Prometheus in a directory. It returns the
// rules by name.
func readAlerts(t *testing.T, dir string) map[string]alertRule {
	t.Helper()
	text, err := os.ReadFile(root + "/dist/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Spec json.RawMessage `json:"spec"`
	}
	var spec struct {
		Groups []struct {
			Rules []alertRule `json:"rules"`
		} `json:"groups"`
	}
	if err := sigsyaml.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw.Spec, &spec); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, rulesFile), raw.Spec, 0o600); err != nil { // JSON is YAML
		t.Fatal(err)
	}
	rules := map[string]alertRule{}
	for _, g := range spec.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || rules[r.Alert].Alert != "" {
				t.Errorf("want rules with an alert of their own, got %+v", r)
			}
			rules[r.Alert] = r
		}
	}
	if len(rules) == 0 {
		t.Fatal("dist/monitoring/alerts.yaml has no rules")
	}
	return rules
}

const rulesFile = "rules.json"

// firing is an alert that is expected to fire: the labels beyond those of its rule, and its summary.
type firing struct {
	labels  map[string]string
	summary string
}

// usage returns the series of a pool of 20 addresses. Those that are reserved are not in use.
func usage(assigned, available, reserved string) map[string]string {
	const labels = `{pool="narrow",family="IPv4"}`
	return map[string]string{
		"ovnkube_slb_pool_capacity_addresses" + labels:     "20",
		"ovnkube_slb_pool_assigned_addresses" + labels:     assigned,
		"ovnkube_slb_pool_available_addresses" + labels:    available,
		"ovnkube_slb_pool_cooling_down_addresses" + labels: "0",
		"ovnkube_slb_pool_reserved_addresses" + labels:     reserved,
	}
}

// Each case has series with constant or rising values and the alerts that they fire after twenty minutes. No other one
// may fire. A controller leads, unless the case says otherwise.
func TestAlertsFireForTheirFaultsOnly(t *testing.T) {
	contract.Test(t, "promtool")
	const leads = "ovnkube_slb_ovn_database_unreachable"
	narrow := map[string]string{"pool": "narrow", "family": "IPv4"}
	domain := map[string]string{"l2domain": "lan"}
	notAnnounced := func(n, reason string) map[string]firing {
		return map[string]firing{"SLBServiceNotAnnounced": {map[string]string{"reason": reason},
			n + " Services are not announced: " + reason + "."}}
	}
	sessionDown := map[string]firing{"SLBBGPSessionDown": {
		map[string]string{"instance": "n1", "bgppeer": "tor", "peer": "10.50.0.1"},
		"The BGP session of n1 with BGPPeer tor (10.50.0.1) is down."}}
	both := func(a, b map[string]firing) map[string]firing {
		all := maps.Clone(a)
		maps.Copy(all, b)
		return all
	}
	peerDown := map[string]firing{"SLBBGPPeerDown": {map[string]string{"bgppeer": "tor"},
		"No session with BGPPeer tor is known to be established."}}
	databaseAway := map[string]firing{"SLBDatabaseUnreachable": {nil,
		"The controller has no connection to OVN's databases. Addresses work, and changes wait."}}
	agentSilent := map[string]firing{"SLBAgentSilent": {nil,
		"The agents of 2 nodes do not report. Addresses work, and changes on these nodes wait."}}
	noGateway := map[string]firing{"SLBNoActiveGateway": {domain,
		"No gateway has claimed 1 shards of L2Domain lan: their addresses are not reachable."}}
	kindUnread := map[string]firing{"SLBKindUnread": {map[string]string{"instance": "n1", "resource": "services"},
		"n1 can't read services any more, and decides from what it read before."}}
	for name, c := range map[string]struct {
		series map[string]string
		want   map[string]firing
	}{
		"a pool at 70 %": {series: usage("14", "6", "0")},
		"a pool at 75 %": {usage("15", "5", "0"), map[string]firing{"SLBPoolUsage75Percent": {narrow,
			"Pool narrow has 75% of its IPv4 addresses allocated."}}},
		"a pool at 85 %": {usage("17", "3", "0"), map[string]firing{"SLBPoolUsage85Percent": {narrow,
			"Pool narrow has 85% of its IPv4 addresses allocated."}}},
		"a pool at 95 %": {usage("19", "1", "0"), map[string]firing{"SLBPoolUsage95Percent": {narrow,
			"Pool narrow has 95% of its IPv4 addresses allocated."}}},
		"a full pool": {usage("20", "0", "0"), map[string]firing{"SLBPoolExhausted": {narrow,
			"Pool narrow has no IPv4 address left. New Services wait."}}},
		"a full pool with an unused reservation": {usage("19", "0", "1"), map[string]firing{"SLBPoolExhausted": {narrow,
			"Pool narrow has no IPv4 address left. New Services wait."}}},
		"a disabled pool": {series: usage("15", "0", "0")},
		"a Service without an address": {map[string]string{
			`ovnkube_slb_services{allocated="False",reason="NoPool"}`:        "2",
			`ovnkube_slb_services{allocated="False",reason="PoolExhausted"}`: "3",
		}, map[string]firing{"SLBServiceWaiting": {map[string]string{"reason": "NoPool"},
			"2 Services of type LoadBalancer have no address: NoPool."}}},
		"Services that are not announced": {map[string]string{
			`ovnkube_slb_announced_services{announced="True",reason="Announced"}`:       "9",
			`ovnkube_slb_announced_services{announced="False",reason="NoDomain"}`:       "1",
			`ovnkube_slb_announced_services{announced="False",reason="NoEndpoints"}`:    "4",
			`ovnkube_slb_announced_services{announced="Unknown",reason="NotAllocated"}`: "2",
		}, notAnnounced("1", "NoDomain")},
		"Services without a session that no daemon reports": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="NoSession"}`:     "9",
			`ovnkube_slb_bgp_session_up{instance="n2",bgppeer="tor",peer="10.50.0.1"}`: "1",
		}, notAnnounced("9", "NoSession")},
		"a BGPPeer without a session that any daemon reports": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="NoSession"}`:    "5",
			`ovnkube_slb_announced_services{announced="Unknown",reason="NodeSilent"}`: "4",
			`ovnkube_slb_bgppeer_sessions{bgppeer="tor",state="established"}`:         "0",
			`ovnkube_slb_bgppeer_sessions{bgppeer="tor",state="down"}`:                "2",
			`ovnkube_slb_bgppeer_sessions{bgppeer="tor",state="unknown"}`:             "1",
		}, peerDown},
		"a BGPPeer without a session": {map[string]string{
			`ovnkube_slb_bgp_session_up{instance="n1",bgppeer="tor",peer="10.50.0.1"}`: "0",
			`ovnkube_slb_bgppeer_sessions{bgppeer="tor",state="established"}`:          "0",
			`ovnkube_slb_bgppeer_sessions{bgppeer="tor",state="down"}`:                 "1",
		}, peerDown},
		"a BGPPeer of frr-k8s with a session": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="NoSession"}`: "9",
			`ovnkube_slb_bgppeer_sessions{bgppeer="tor",state="established"}`:      "1",
			`ovnkube_slb_bgppeer_sessions{bgppeer="tor",state="down"}`:             "1",
		}, notAnnounced("9", "NoSession")},
		"Services without a session that a daemon reports": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="NoSession"}`:     "9",
			`ovnkube_slb_bgp_session_up{instance="n1",bgppeer="tor",peer="10.50.0.1"}`: "0",
		}, both(sessionDown, notAnnounced("9", "NoSession"))},
		"Services without a session because one goes up and down": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="NoSession"}`:     "9",
			`ovnkube_slb_bgp_session_up{instance="n1",bgppeer="tor",peer="10.50.0.1"}`: strings.Repeat("0 1 ", 10) + "0",
		}, notAnnounced("9", "NoSession")},
		"Services of silent nodes that are no agents of layer 2": {map[string]string{
			`ovnkube_slb_announced_services{announced="Unknown",reason="NodeSilent"}`: "9", "ovnkube_slb_silent_agents": "0",
		}, notAnnounced("9", "NodeSilent")},
		"Services of silent agents": {map[string]string{
			`ovnkube_slb_announced_services{announced="Unknown",reason="NodeSilent"}`: "9", "ovnkube_slb_silent_agents": "2",
		}, agentSilent},
		"Services of a zone whose database is away": {map[string]string{
			`ovnkube_slb_announced_services{announced="Unknown",reason="DatabaseUnreachable"}`: "1", leads: "0",
		}, notAnnounced("1", "DatabaseUnreachable")},
		"Services of the controller's databases that are away": {map[string]string{
			`ovnkube_slb_announced_services{announced="Unknown",reason="DatabaseUnreachable"}`: "1", leads: "1",
		}, databaseAway},
		"Services of an unclaimed shard": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="NoActiveGateway"}`: "4",
			`ovnkube_slb_l2domain_unclaimed_shards{l2domain="lan"}`:                      "1",
		}, noGateway},
		"Services without an active gateway, and no unclaimed shard": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="NoActiveGateway"}`: "4",
			`ovnkube_slb_l2domain_unclaimed_shards{l2domain="lan"}`:                      "0",
		}, notAnnounced("4", "NoActiveGateway")},
		"status writes that fail": {map[string]string{
			`ovnkube_slb_status_writes_total{kind="Service",result="error"}`:          "0+1",
			`ovnkube_slb_status_writes_total{kind="Service",result="conflict"}`:       "0+1",
			`ovnkube_slb_status_writes_total{kind="L2Domain",result="ok"}`:            "0+1",
			`ovnkube_slb_status_writes_total{kind="IPAddressPool",result="error"}`:    "7",
			`ovnkube_slb_announced_services{announced="Unknown",reason="NotWritten"}`: "9",
		}, map[string]firing{"SLBStatusWritesFail": {map[string]string{"kind": "Service"},
			"Writes of the kind Service fail: the API server does not have what was decided."}}},
		"kinds that can't be read": {map[string]string{
			`ovnkube_slb_unread_kinds{instance="n1",resource="services"}`:          "1",
			`ovnkube_slb_announced_services{announced="Unknown",reason="NotRead"}`: "9",
		}, kindUnread},
		"Services that only nodes advertise which can't read a kind, and no such node has metrics": {map[string]string{
			`ovnkube_slb_announced_services{announced="Unknown",reason="NotRead"}`: "9",
		}, notAnnounced("9", "NotRead")},
		"kinds that could not be read until lately": {series: map[string]string{
			`ovnkube_slb_unread_kinds{instance="n1",resource="services"}`: "1x10 _",
		}},
		"status writes that wait": {map[string]string{
			`ovnkube_slb_status_writes_total{kind="Service",result="error"}`:          "7",
			`ovnkube_slb_announced_services{announced="Unknown",reason="NotWritten"}`: "9",
		}, notAnnounced("9", "NotWritten")},
		"another host that has an address": {map[string]string{
			`ovnkube_slb_announced_services{announced="False",reason="AddressConflict"}`: "1",
		}, map[string]firing{"SLBAddressConflict": {nil, "Another host answers for addresses of 1 Services."}}},
		"another host that takes an announced address": {map[string]string{
			`ovnkube_slb_announced_services{announced="True",reason="Announced"}`: "9",
			`ovnkube_slb_services{allocated="True",reason="Allocated"}`:           "7",
			`ovnkube_slb_services{allocated="True",reason="AddressConflict"}`:     "2",
		}, map[string]firing{"SLBAddressConflict": {nil, "Another host answers for addresses of 2 Services."}}},
		"one usable gateway": {map[string]string{
			`ovnkube_slb_l2domain_usable_gateways{l2domain="lan"}`: "1", `ovnkube_slb_l2domain_shards{l2domain="lan"}`: "2",
			`ovnkube_slb_l2domain_unclaimed_shards{l2domain="lan"}`: "0",
		}, map[string]firing{"SLBGatewayRedundancyLost": {domain, "L2Domain lan has 1 usable gateways: if the active one " +
			"fails, its addresses are not reachable."}}},
		"one usable gateway, and no address": {series: map[string]string{
			`ovnkube_slb_l2domain_usable_gateways{l2domain="lan"}`: "1", `ovnkube_slb_l2domain_shards{l2domain="lan"}`: "0",
		}},
		"a shard without an active gateway": {map[string]string{
			`ovnkube_slb_l2domain_usable_gateways{l2domain="lan"}`: "3", `ovnkube_slb_l2domain_shards{l2domain="lan"}`: "2",
			`ovnkube_slb_l2domain_unclaimed_shards{l2domain="lan"}`: "1",
		}, noGateway},
		"a fault of a gateway": {map[string]string{
			`ovnkube_slb_guard_active_faults{instance="n3",kind="uplink"}`: "1",
			`ovnkube_slb_guard_active_faults{instance="n2",kind="uplink"}`: "0",
		}, map[string]firing{"SLBGatewayFaulty": {map[string]string{"instance": "n3", "kind": "uplink"},
			"The guard on n3 reports a fault of its gateway: uplink."}}},
		"a session that is down": {map[string]string{
			`ovnkube_slb_bgp_session_up{instance="n1",bgppeer="tor",peer="10.50.0.1"}`: "0",
			`ovnkube_slb_bgp_session_up{instance="n2",bgppeer="tor",peer="10.50.0.1"}`: "1",
		}, sessionDown},
		"databases that are away": {map[string]string{leads: "1"}, databaseAway},
		"no controller that leads": {map[string]string{leads: "_"}, map[string]firing{"SLBNoLeader": {nil, "No controller " +
			"leads: none runs, or none has a connection to OVN's databases. Addresses work, and changes wait."}}},
		"agents that are silent": {map[string]string{"ovnkube_slb_silent_agents": "2"}, agentSilent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			series := maps.Clone(c.series)
			if series[leads] == "" {
				series[leads] = "0"
			}
			checkAlerts(t, series, c.want)
		})
	}
}

// checkAlerts runs `promtool test rules` with series whose values are constant, or rise with each sample ("0+1").
func checkAlerts(t *testing.T, series map[string]string, want map[string]firing) {
	t.Helper()
	dir := t.TempDir()
	rules := readAlerts(t, dir)
	const long = "20m"
	var inputs, tests []any
	for _, name := range slices.Sorted(maps.Keys(series)) {
		inputs = append(inputs, map[string]string{"series": name, "values": series[name] + "x20"})
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		expected := []any{}
		if f, ok := want[name]; ok {
			labels := maps.Clone(rules[name].Labels)
			maps.Copy(labels, f.labels)
			expected = append(expected, map[string]any{"exp_labels": labels, "exp_annotations": map[string]string{
				"summary": f.summary, "command": expand(rules[name].Annotations["command"], f.labels)}})
		}
		tests = append(tests, map[string]any{"eval_time": long, "alertname": name, "exp_alerts": expected})
	}
	text, err := json.Marshal(map[string]any{"rule_files": []string{rulesFile}, "evaluation_interval": "1m",
		"tests": []any{map[string]any{"interval": "1m", "input_series": inputs, "alert_rule_test": tests}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tests.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// expand replaces the labels in a command.
func expand(command string, labels map[string]string) string {
	for name, value := range labels {
		command = strings.ReplaceAll(command, "{{ $labels."+name+" }}", value)
	}
	return command
}
