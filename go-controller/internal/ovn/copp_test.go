// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What hosts on a segment send our routers reaches ovn-controller through meters only. The meters, and what else limits
// it, go with the last shard.
func TestWhatRoutersLearnIsLimited(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	sb := serve(t, southboundSchema)
	sb.sbctl(t, "init")
	translate(t, s, sb)
	s.sync(t)
	for _, learns := range []string{"put_arp", "put_nd"} {
		flows := sb.sbctl(t, "--bare", "--format=csv", "--data=bare", "--columns=controller_meter,actions,external_ids",
			"list", "Logical_Flow")
		var meters []string
		for flow := range strings.Lines(flows) {
			if strings.Contains(flow, learns+"(inport") && strings.Contains(flow, "lr_in_learn_neighbor") {
				meter, _, _ := strings.Cut(flow, ",")
				meters = append(meters, meter)
			}
		}
		slices.Sort(meters)
		if !slices.ContainsFunc(meters, func(m string) bool { return strings.HasPrefix(m, "slb-") }) {
			t.Errorf("flows with %s have the meters %q, none of ours", learns, meters)
		}
	}
	age := s.nbctl(t, "get", "Logical_Router", "slb-lan-0", "options:mac_binding_age_threshold")
	if got := strings.Trim(age, "\"\n"); got != "300" {
		t.Errorf("bindings age after %q seconds", got)
	}
	configure(t, d, topology(0))
	prune(t, d)
	for _, table := range []string{"Copp", "Meter", "Meter_Band"} {
		if left := strings.TrimSpace(s.nbctl(t, "--bare", "--columns=_uuid", "list", table)); left != "" {
			t.Errorf("%s: %s is left", table, left)
		}
	}
}

// A host decides how many packets it sends to a port without an endpoint or that is closed, or that reach their last
// hop. ovn-controller answers each of them.
func TestWhatRoutersAnswerIsLimited(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	sb := serve(t, southboundSchema)
	sb.sbctl(t, "init")
	translate(t, s, sb)
	apply(t, d, service(1, 1, "10.244.1.10"))
	s.sync(t)
	answers := regexp.MustCompile(`\b(icmp[46](_error)?|tcp_reset|reject|sctp_abort) \{`)
	ours := regexp.MustCompile(`controller_meter +: +slb-`)
	flows := strings.Split(sb.sbctl(t, "--columns=logical_datapath,controller_meter,actions", "list", "Logical_Flow"),
		"\n\n")
	for _, router := range []string{"slb-lan-0", "slbnode-n3"} {
		found := map[string]bool{}
		datapath := strings.TrimSpace(sb.sbctl(t, "--bare", "--columns=_uuid", "find", "Datapath_Binding",
			"external_ids:name="+router))
		for _, flow := range flows {
			what := answers.FindString(flow)
			if what == "" || datapath == "" || !strings.Contains(flow, datapath) {
				continue
			}
			if found[what] = true; !ours.MatchString(flow) {
				t.Errorf("%s has a flow without a meter of ours:\n%s", router, flow)
			}
		}
		if !found["icmp4 {"] || found["reject {"] != (router == "slb-lan-0") {
			t.Errorf("%s has flows with %v", router, found)
		}
	}
}
