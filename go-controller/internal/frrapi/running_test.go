// SPDX-License-Identifier: Apache-2.0

package frrapi_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// configuration returns what FRR of a version shows of a configuration that frr-k8s renders: two neighbors with both
// families, one of them by its interface, one without prefixes, one whose address is written in another notation, and
// one in a VRF.
func configuration(t testing.TB, version string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/frr-" + version + ".conf")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func versions() []string { return []string{"8.4", "10.3"} }

// A prefix counts only if FRR originates it in the default VRF and lets it through to the neighbor.
func TestParseRunning(t *testing.T) {
	want := map[string]string{"10.50.0.1": "[203.0.113.1/32 203.0.113.2/32 2001:db8::1/128]",
		"fd00:50::1": "[2001:db8::1/128]", "eth7": "[203.0.113.1/32 2001:db8::1/128]"}
	for _, version := range versions() {
		got, restrictions, err := frrapi.ParseRunning(configuration(t, version))
		if err != nil || len(got) != len(want) || len(restrictions) > 0 {
			t.Errorf("FRR %s: %v, restrictions %v (%v)", version, got, restrictions, err)
		}
		for id, prefixes := range want {
			if text := fmt.Sprint(got[id]); text != prefixes {
				t.Errorf("FRR %s: %s: %s, want %s", version, id, text, prefixes)
			}
		}
	}
}

// What rawConfig of others changes: the neighbor is unknown, or its family is known as inactive, and what it has of the
// other family counts. The line is named. All of them were seen in what FRR shows.
func TestNotSentIsNotRunning(t *testing.T) {
	const active, applied, isOut = "  neighbor 10.50.0.1 activate\n", "  neighbor 10.50.0.1 route-map 10.50.0.1-out out\n",
		" address-family ipv4 unicast\n"
	const list, entry = "ip prefix-list 10.50.0.1-allowed-ipv4 seq 1 ", "route-map 10.50.0.1-out permit 2\n"
	const matches = " match ip address prefix-list 10.50.0.1-allowed-ipv4\n"
	const six = "[2001:db8::1/128]"
	for name, c := range map[string]struct{ before, after, running, unclear string }{
		"not activated": {active, "", six, ""},
		"not activated although that is the default": {" no bgp default ipv4-unicast\n", "", six, ""},
		"another route map": {applied, "  neighbor 10.50.0.1 route-map mine out\n", "[]",
			"route-map mine out"},
		"the route map of another neighbor": {applied, "  neighbor 10.50.0.1 route-map 10.50.0.2-out out\n", "[]",
			"route-map 10.50.0.2-out out"},
		"no route map": {applied, "", "[]", "FRR applies no route map"},
		"a filter": {isOut, isOut + "  neighbor 10.50.0.1 filter-list 7 out\n", "[]",
			"filter-list 7 out"},
		"a limit": {isOut, isOut + "  neighbor 10.50.0.1 maximum-prefix-out 3\n", "[]",
			"maximum-prefix-out 3"},
		"a condition": {isOut, isOut + "  neighbor 10.50.0.1 advertise-map a exist-map b\n", "[]",
			"advertise-map a"},
		"a filter of the router": {isOut, isOut + "  neighbor 10.50.0.1 capability orf prefix-list both\n", "[]",
			"orf"},
		"a peer group": {" neighbor 10.50.0.1 bfd\n", " neighbor 10.50.0.1 peer-group g\n", "[]",
			"10.50.0.1 peer-group g"},
		"denied before": {list + "permit 203.0.113.1/32", list + "deny any", "[]", "seq 1 deny any"},
		"a range": {list + "permit 203.0.113.1/32", list + "permit 0.0.0.0/0 le 32", "[]",
			"permit 0.0.0.0/0 le 32"},
		"all denied first": {entry, "route-map 10.50.0.1-out deny 1\nexit\n" + entry, "[]",
			"route-map 10.50.0.1-out deny 1"},
		"denied":       {entry, "route-map 10.50.0.1-out deny 2\n", "[]", "does not permit the prefix list"},
		"matches more": {matches, matches + " match community c\n", "[]", "does not permit the prefix list"},
		"calls":        {matches, matches + " call x\n", "[]", "route-map 10.50.0.1-out: call x"},
		"goes on": {" on-match next\n", " on-match goto 9\n", "[]",
			"route-map 10.50.0.1-out: on-match goto 9"},
		"import check": {" no bgp network import-check\n", "", "[]", "bgp network import-check"},
		"an aggregate": {isOut, isOut + "  aggregate-address 203.0.113.0/24 summary-only\n", "[]",
			"aggregate-address 203.0.113.0/24 summary-only"},
		"a network with a route map": {"  network 203.0.113.2/32\n", "  network 203.0.113.2/32 route-map mine\n", "[]",
			"network 203.0.113.2/32 route-map mine"},
	} {
		for _, version := range versions() {
			text := configuration(t, version)
			if !strings.Contains(text, c.before) {
				t.Errorf("%s: FRR %s does not show %q", name, version, c.before)
			}
			if name == "not activated although that is the default" {
				text = strings.Replace(text, active, "  no neighbor 10.50.0.1 activate\n", 1)
			}
			got, restrictions, err := frrapi.ParseRunning(strings.Replace(text, c.before, c.after, 1))
			is := restrictions["10.50.0.1"]
			if fmt.Sprint(got["10.50.0.1"]) != c.running || err != nil {
				t.Errorf("%s: %v run (%v), want %s", name, got["10.50.0.1"], err, c.running)
			}
			if !strings.Contains(is.Unclear, c.unclear) || (is.Unclear == "") != (c.unclear == "") ||
				is.WithoutIPv4 != (c.unclear == "") || is.WithoutIPv6 {
				t.Errorf("%s: %+v, want %q", name, is, c.unclear)
			}
		}
	}
}

// What rawConfig of others may add without effect on what is sent. IPv4 is active by default.
func TestHarmlessConfigurationIsRunning(t *testing.T) {
	for name, edit := range map[string][2]string{
		"another permit": {"route-map 10.50.0.1-out permit 2\n",
			"route-map 10.50.0.1-out permit 2\n match ip address " +
				"prefix-list mine\n set metric 7\nexit\n!\nroute-map 10.50.0.1-out permit 9\n"},
		"activated by default": {" no bgp default ipv4-unicast\n", ""},
		"another aggregate": {" address-family ipv4 unicast\n", " address-family ipv4 unicast\n" +
			"  aggregate-address 203.0.112.0/24 summary-only\n  aggregate-address 203.0.113.0/24\n"},
		"other options of the neighbor": {"  neighbor 10.50.0.1 activate\n", "  neighbor 10.50.0.1 activate\n" +
			"  neighbor 10.50.0.1 allowas-in 3\n  neighbor 10.50.0.1 filter-list 7 in\n"},
		"another family": {" address-family ipv6 unicast\n",
			" address-family ipv4 vpn\n  neighbor 10.50.0.1 activate\n" +
				"  neighbor 10.50.0.1 route-map mine out\n exit-address-family\n !\n address-family ipv6 unicast\n"},
	} {
		text := configuration(t, "10.3")
		if name == "activated by default" {
			text = strings.Replace(text, "  neighbor 10.50.0.1 activate\n", "", 1)
		}
		got, restrictions, err := frrapi.ParseRunning(strings.Replace(text, edit[0], edit[1], 1))
		if len(got["10.50.0.1"]) != 3 || len(restrictions) > 0 || err != nil {
			t.Errorf("%s: %v, %v (%v)", name, got, restrictions, err)
		}
	}
}

// Restrictions are bounded: the text may be forged.
func TestRestrictionsAreBounded(t *testing.T) {
	text := func(count int) string {
		var b strings.Builder
		b.WriteString("router bgp 1\n address-family ipv4 unicast\n  network 10.0.0.0/8\n")
		for i := range count {
			fmt.Fprintf(&b, "  neighbor e%d activate\n  neighbor e%[1]d route-map %s out\n", i, strings.Repeat("m", 1000))
		}
		b.WriteString("exit\n")
		for i := range count {
			fmt.Fprintf(&b, "ip prefix-list e%d-allowed-ipv4 seq 1 permit 10.0.0.0/8\n", i)
		}
		return b.String()
	}
	_, restrictions, err := frrapi.ParseRunning(text(frrapi.MaxRestricted))
	if len(restrictions) != frrapi.MaxRestricted || err != nil || len(restrictions["e1"].Unclear) > 200 {
		t.Errorf("%d restrictions (%v), the first %q", len(restrictions), err, restrictions["e1"].Unclear)
	}
	if running, restrictions, err := frrapi.ParseRunning(text(frrapi.MaxRestricted + 1)); err == nil || running != nil ||
		restrictions != nil {
		t.Errorf("one more: %d restrictions (%v)", len(restrictions), err)
	}
}

func FuzzParseRunning(f *testing.F) {
	f.Add("router bgp 1\n address-family ipv4 unicast\n  network 10.0.0.0/8\n  neighbor a activate\n" +
		"ip prefix-list a-allowed-ipv4 seq 1 permit 10.0.0.0/8\n")
	f.Add(configuration(f, "8.4"))
	f.Fuzz(func(t *testing.T, text string) {
		running, restrictions, _ := frrapi.ParseRunning(text)
		for id, prefixes := range running {
			if restrictions[id].Unclear != "" {
				t.Errorf("%s: %v run, although %s", id, prefixes, restrictions[id].Unclear)
			}
			for i, p := range prefixes {
				if p != p.Masked() || i > 0 && netip.Prefix.Compare(prefixes[i-1], p) >= 0 {
					t.Errorf("%s: %v is not sorted, distinct and masked", id, prefixes)
				}
			}
		}
	})
}

func TestUnknownFieldsOfNeighborsAreKept(t *testing.T) {
	const text = `{"address":"10.50.0.1","asn":64513,"holdTime":"1m30s","nextHop":"10.50.0.9","toReceive":{"allowed":{}}}`
	var n frrapi.Neighbor
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	if len(n.Other) != 2 || n.HoldTime.Seconds() != 90 {
		t.Errorf("read %+v", n)
	}
	if again, err := json.Marshal(n); err != nil || string(again) != text {
		t.Errorf("%s (%v), want %s", again, err, text)
	}
}

func TestSessionID(t *testing.T) {
	for id, want := range map[string]string{"10.50.0.1": "10.50.0.1", "eth0": "eth0",
		"fd00::1": "fd00-0000-0000-0000-0000-0000-0000-0001"} {
		if got := frrapi.SessionID(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
