// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// drained is a cluster in which the Services shop/s1 and so on have addresses. The nodes are names, those that begin
// with "-" drain already.
func drained(services int, nodes ...string) *apiServer {
	s := &apiServer{items: map[string]string{
		"ipaddresspools": `{"metadata":{"name":"public"},"spec":{"addresses":["10.50.0.100-10.50.0.199"]}}`,
	}}
	add := func(resource, format string, args ...any) {
		if s.items[resource] != "" {
			s.items[resource] += ","
		}
		s.items[resource] += fmt.Sprintf(format, args...)
	}
	for i, node := range nodes {
		name, drain := strings.TrimPrefix(node, "-"), ""
		if name != node {
			drain = `"slb.k8s.ovn.org/drain":"",`
		}
		add("nodes", `{"metadata":{"name":%q,"annotations":{%s"k8s.ovn.org/node-chassis-id":"c%d",`+
			`"k8s.ovn.org/node-subnets":"{\"default\":[\"10.244.%[3]d.0/24\"]}"}},`+
			`"status":{"addresses":[{"type":"InternalIP","address":"172.18.0.%[3]d"}]}}`, name, drain, i+1)
		add("bgpnodestatuses", `{"metadata":{"name":%q}}`, name)
	}
	for i := range services {
		add("services", `{"metadata":{"name":"s%[1]d","namespace":"shop","creationTimestamp":"2026-01-01T00:00:00Z"},`+
			`"spec":{"type":"LoadBalancer","ipFamilies":["IPv4"],"selector":{"app":"x"},"ports":[{"port":80,`+
			`"protocol":"TCP"}]},"status":{"loadBalancer":{"ingress":[{"ip":"10.50.0.10%[1]d"}]},"conditions":[{"type":`+
			`"slb.k8s.ovn.org/Allocated","status":"True","reason":"Allocated",`+
			`"message":"10.50.0.10%[1]d from pool public"}]}}`, i+1)
		add("endpointslices", `{"metadata":{"name":"s%[1]d-1","namespace":"shop","labels":{"kubernetes.io/service-name":`+
			`"s%[1]d"}},"addressType":"IPv4","ports":[{"port":80,"protocol":"TCP"}],"endpoints":[{"addresses":`+
			`["10.244.1.5"],"nodeName":"n1","conditions":{"ready":true}}]}`, i+1)
	}
	return s
}

// The last node that advertises addresses by BGP is not drained unless that is forced.
func TestLastAdvertiserIsNotDrained(t *testing.T) {
	const why = "node n1 is not drained: 7 Services would no longer be announced, because no other node advertises " +
		"them: shop/s1, shop/s2, shop/s3, shop/s4, shop/s5, shop/s6, shop/s7; --force drains it all the same"
	for _, c := range []struct {
		command string
		nodes   []string
		want    string
	}{
		{"drain n1 --wait=false", []string{"n1"}, why},
		{"drain n1 --dry-run", []string{"n1", "-n2"}, why},
		{"drain n1 --wait=false --force", []string{"n1"}, ""},
		{"drain n1 --wait=false", []string{"n1", "n2"}, ""},
		{"undrain n1", []string{"-n1"}, ""},
	} {
		s := drained(7, c.nodes...)
		s.items["bgppeers"] = `{"metadata":{"name":"tor"},"spec":{"myASN":64512,"peerASN":64513,"peerAddress":"172.18.0.254"}}`
		s.items["bgpadvertisements"] = `{"metadata":{"name":"public"},"spec":{"ipAddressPools":["public"]}}`
		checkDrain(t, s, c.command, c.want)
	}
}

// The last gateway of an L2Domain is not drained, either: it would keep its shards.
func TestLastGatewayIsNotDrained(t *testing.T) {
	const why = "node n1 is not drained: 2 Services would stay on it, because all gateways of their L2Domain drain: " +
		"shop/s1, shop/s2; --force drains it all the same"
	for _, c := range []struct {
		command string
		nodes   []string
		want    string
	}{
		{"drain n1 --wait=false", []string{"n1"}, why},
		{"drain n1 --dry-run", []string{"n1"}, why},
		{"drain n1 --wait=false --force", []string{"n1"}, ""},
		{"drain n1 --wait=false", []string{"n1", "n2"}, ""},
		{"undrain n1", []string{"-n1"}, ""},
	} {
		s := drained(2, c.nodes...)
		s.items["l2domains"] = `{"metadata":{"name":"lan"},"spec":{"ipAddressPools":["public"],"physicalNetwork":"provider",` +
			`"subnets":[{"cidr":"10.50.0.0/24","gateway":"10.50.0.1"}]}}`
		checkDrain(t, s, c.command, c.want)
	}
}

func checkDrain(t *testing.T, s *apiServer, command, want string) {
	t.Helper()
	out, err := s.run(t, command)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != want || (len(s.patched) == 1) != (want == "") {
		t.Errorf("%s: error %q, want %q; patched %v, output\n%s", command, text, want, s.patched, out)
	}
}

// A tenant with many Services does not hide those of others in what a refusal names.
func TestRefusalNamesServicesOfEachNamespace(t *testing.T) {
	names := func(namespace string, n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("%s/s%d", namespace, i+1))
		}
		return list
	}
	for _, c := range []struct {
		services []string
		most     int
		want     string
	}{
		{names("a", 2), 4, "a/s1, a/s2"},
		{names("a", 9), 4, "a/s1, a/s2, a/s3, a/s4 and 5 more (-o wide names all)"},
		{slices.Concat(names("a", 9), names("b", 1), names("c", 2)), 4,
			"a/s1, b/s1, c/s1, a/s2 and 8 more (-o wide names all)"},
		{slices.Concat(names("a", 9), names("b", 1), names("c", 2), names("d", 2)), 2,
			"a/s1, b/s1 and 12 more, also in 2 other namespaces (-o wide names all)"},
		{slices.Concat(names("a", 3), names("b", 1)), math.MaxInt, "a/s1, b/s1, a/s2, a/s3"},
	} {
		want := "node n1 is not drained: %d Services would stay on it, because all gateways of their L2Domain drain: %s; " +
			"--force drains it all the same"
		want = fmt.Sprintf(want, len(c.services), c.want)
		if err := refusal("n1", nil, c.services, c.most); err.Error() != want {
			t.Errorf("error\n%v\nwant\n%s", err, want)
		}
	}
}
