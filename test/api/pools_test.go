// SPDX-License-Identifier: Apache-2.0

package api

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// badCase is the spec of an object that must be refused, and what the message must contain: the field and the value.
type badCase struct {
	name, spec string
	says       []string
}

func badPools() []badCase {
	return []badCase{
		{"no addresses", `addresses: []`, []string{"spec.addresses", "should have at least 1 items"}},
		{"neither addresses nor a provider", `autoAssign: true`, []string{"spec",
			"a pool needs addresses or an externalPool"}},
		{"addresses and a provider", "addresses: [10.0.0.1]\nexternalPool: {apiGroup: a.io, kind: Pool, name: p}",
			[]string{"spec", "addresses and externalPool exclude each other"}},
		{"a provider and fields about addresses", "externalPool: {apiGroup: a.io, kind: Pool, name: p}\n" +
			"exclude: [10.0.0.1]\nreservations: [{namespace: a, name: b, addresses: [10.0.0.1]}]\nreuseDelay: 5m\n" +
			"avoidBuggyIPs: true\nexternalIPs: true",
			[]string{"spec", "exclude excludes externalPool", "reservations excludes externalPool",
				"reuseDelay excludes externalPool", "avoidBuggyIPs excludes externalPool", "externalIPs excludes externalPool"}},
		{"no API group", "externalPool: {apiGroup: a.io/v1, kind: Pool, name: p}",
			[]string{"spec.externalPool.apiGroup", "a.io/v1 is no API group"}},
		{"no kind", "externalPool: {apiGroup: a.io, kind: a pool, name: p}",
			[]string{"spec.externalPool.kind", "a pool is no kind"}},
		{"no name of a pool", "externalPool: {apiGroup: a.io, kind: Pool, name: A}",
			[]string{"spec.externalPool.name", "A is no name of an object"}},
		{"no family", "externalPool: {apiGroup: a.io, kind: Pool, name: p, ipFamily: IPv5}",
			[]string{"spec.externalPool.ipFamily", "IPv5", "supported values"}},
		{"no address at all", `addresses: [bogus]`, []string{"spec.addresses[0]", "bogus is no CIDR, range or address"}},
		{"empty text", `addresses: [""]`, []string{"spec.addresses[0]", `""`}},
		{"host name", `addresses: [10.0.0.1, lb.example.com]`, []string{"spec.addresses[1]", "lb.example.com is no CIDR"}},
		{"octet over 255", `addresses: [10.0.0.256]`, []string{"spec.addresses[0]", "10.0.0.256 is no CIDR"}},
		{"leading zeros", `addresses: [10.0.0.010]`, []string{"spec.addresses[0]", "10.0.0.010 is no CIDR"}},
		{"prefix too long, IPv4", `addresses: [10.0.0.0/33]`, []string{"spec.addresses[0]", "10.0.0.0/33 is no CIDR"}},
		{"prefix too long, IPv6", `addresses: ["fd00::/129"]`, []string{"spec.addresses[0]", "fd00::/129 is no CIDR"}},
		{"no prefix length", `addresses: [10.0.0.0/]`, []string{"spec.addresses[0]", "10.0.0.0/ is no CIDR"}},
		{"netmask", `addresses: [10.0.0.0/255.255.255.0]`, []string{"spec.addresses[0]",
			"10.0.0.0/255.255.255.0 is no CIDR"}},
		{"host bits, IPv4", `addresses: [10.0.0.5/24]`, []string{"spec.addresses[0]", "10.0.0.5/24 has host bits set"}},
		{"host bits, IPv6", `addresses: ["fd00::5/64"]`, []string{"spec.addresses[0]", "fd00::5/64 has host bits set"}},
		{"range of three", `addresses: [10.0.0.1-10.0.0.2-10.0.0.3]`, []string{"spec.addresses[0]",
			"10.0.0.1-10.0.0.2-10.0.0.3 is no CIDR"}},
		{"range without end", `addresses: [10.0.0.1-]`, []string{"spec.addresses[0]", "10.0.0.1- is no CIDR"}},
		{"range by last octet", `addresses: [10.0.0.1-20]`, []string{"spec.addresses[0]", "10.0.0.1-20 is no CIDR"}},
		{"range of CIDRs", `addresses: [10.0.0.0/24-10.0.1.0/24]`, []string{"spec.addresses[0]",
			"10.0.0.0/24-10.0.1.0/24 is no CIDR"}},
		{"range backwards, IPv4", `addresses: [10.0.0.9-10.0.0.10, 10.0.0.200-10.0.0.100]`,
			[]string{"spec.addresses", "10.0.0.200-10.0.0.100 ends before it begins"}},
		{"range backwards, IPv6", `addresses: ["fd00::1:0-fd00::ffff"]`, []string{"spec.addresses",
			"fd00::1:0-fd00::ffff ends before it begins"}},
		{"range of both families", `addresses: ["10.0.0.1-fd00::1"]`, []string{"spec.addresses[0]",
			"10.0.0.1-fd00::1 mixes IPv4 and IPv6"}},
		{"zone", `addresses: ["fe80::1%eth0"]`, []string{"spec.addresses[0]", "fe80::1%eth0 is no CIDR"}},
		{"IPv4-mapped", `addresses: ["::ffff:10.0.0.1"]`, []string{"spec.addresses[0]", "::ffff:10.0.0.1 is no CIDR"}},
		{"dotted IPv6", `addresses: ["64:ff9b::10.0.0.1"]`, []string{"spec.addresses[0]", "64:ff9b::10.0.0.1 is no CIDR"}},
		{"multicast, IPv4", `addresses: [224.0.1.0/24]`, []string{"spec.addresses[0]",
			"224.0.1.0/24 has addresses that no Service can have"}},
		{"multicast, IPv6", `addresses: ["ff02::/16"]`, []string{"spec.addresses[0]",
			"ff02::/16 has addresses that no Service can have"}},
		{"loopback", `addresses: [127.0.0.1]`, []string{"spec.addresses[0]",
			"127.0.0.1 has addresses that no Service can have"}},
		{"link-local", `addresses: ["fe80::1"]`, []string{"spec.addresses[0]",
			"fe80::1 has addresses that no Service can have"}},
		{"unspecified", `addresses: [0.0.0.0/0]`, []string{"spec.addresses[0]",
			"0.0.0.0/0 has addresses that no Service can have"}},
		{"broadcast", `addresses: [255.255.255.0-255.255.255.255]`,
			[]string{"spec.addresses[0]", "255.255.255.0-255.255.255.255 has addresses that no Service can have"}},
		{"twice the same text", `addresses: [10.0.0.1, 10.0.0.1]`, []string{"spec.addresses[1]", "Duplicate value",
			"10.0.0.1"}},
		{"twice the same address", `addresses: ["fd00::1", "FD00:0::1"]`,
			[]string{"spec.addresses", "these overlap: fd00::1, FD00:0::1"}},
		{"CIDR in CIDR", `addresses: [10.0.0.0/16, 10.0.4.0/24]`, []string{"spec.addresses",
			"these overlap: 10.0.0.0/16, 10.0.4.0/24"}},
		{"address in CIDR", `addresses: [10.0.0.5, 10.0.0.0/24]`, []string{"spec.addresses",
			"these overlap: 10.0.0.5, 10.0.0.0/24"}},
		{"range over the end of a CIDR", `addresses: [10.1.0.0/24, 10.0.0.0/24, 10.0.0.255-10.0.1.5]`,
			[]string{"spec.addresses", "these overlap: 10.0.0.0/24, 10.0.0.255-10.0.1.5"}},
		{"CIDR inside a range", `addresses: [10.0.0.1-10.0.0.200, 10.0.0.64/26]`,
			[]string{"spec.addresses", "these overlap: 10.0.0.1-10.0.0.200, 10.0.0.64/26"}},
		{"ranges that share one address", `addresses: ["fd00::1-fd00::ff", "fd00::ff-fd00::1ff"]`,
			[]string{"spec.addresses", "these overlap: fd00::1-fd00::ff, fd00::ff-fd00::1ff"}},
		{"an odd prefix length", `addresses: ["fd00::/61", "fd00:0:0:7::1"]`,
			[]string{"spec.addresses", "these overlap: fd00::/61, fd00:0:0:7::1"}},
		{"bad exclude", "addresses: [10.0.0.0/24]\nexclude: [10.0.0.1/24]",
			[]string{"spec.exclude[0]", "10.0.0.1/24 has host bits set"}},
		{"exclude backwards", "addresses: [10.0.0.0/24]\nexclude: [10.0.0.9-10.0.0.1]",
			[]string{"spec.exclude", "10.0.0.9-10.0.0.1 ends before it begins"}},
		{"exclude outside", "addresses: [10.0.0.0/24]\nexclude: [10.0.0.1, 10.0.1.1]",
			[]string{"spec.exclude", "10.0.1.1 is not inside one entry of addresses"}},
		{"exclude of the other family", "addresses: [10.0.0.0/24]\nexclude: [\"fd00::1\"]",
			[]string{"spec.exclude", "fd00::1 is not inside"}},
		{"exclude half outside", "addresses: [10.0.0.10-10.0.0.100]\nexclude: [10.0.0.64/26]",
			[]string{"spec.exclude", "10.0.0.64/26 is not inside one entry of addresses"}},
		{"exclude larger than the pool", "addresses: [10.0.0.0/24]\nexclude: [10.0.0.0/23]",
			[]string{"spec.exclude", "10.0.0.0/23 is not inside"}},
		{"reservation outside", "addresses: [10.0.0.0/24]\nreservations: [{namespace: a, name: b, addresses: [10.0.0.1]}, " +
			"{namespace: a, name: c, addresses: [10.9.0.1]}]",
			[]string{"spec.reservations", "10.9.0.1 is not in addresses"}},
		{"reservation of a CIDR", "addresses: [10.0.0.0/24]\nreservations: [{namespace: a, name: b, addresses: " +
			"[10.0.0.0/25]}]",
			[]string{"spec.reservations[0].addresses[0]", "10.0.0.0/25 is no IPv4 or IPv6 address"}},
		{"reservation without name", "addresses: [10.0.0.0/24]\nreservations: [{namespace: a, addresses: [10.0.0.1]}]",
			[]string{"spec.reservations[0].name", "Required"}},
		{"quota of none", "addresses: [10.0.0.0/24]\nquotaPerNamespace: 0",
			[]string{"spec.quotaPerNamespace", "0", "greater than or equal to 1"}},
		{"negative priority", "addresses: [10.0.0.0/24]\nserviceAllocation: {priority: -1}",
			[]string{"spec.serviceAllocation.priority", "-1"}},
		{"reuseDelay without unit", "addresses: [10.0.0.0/24]\nreuseDelay: \"30\"",
			[]string{"spec.reuseDelay", "30 is no duration"}},
		{"reuseDelay of days", "addresses: [10.0.0.0/24]\nreuseDelay: 48h",
			[]string{"spec.reuseDelay", "48h is no duration of at most 24h"}},
		{"unknown field", "addresses: [10.0.0.0/24]\nprotocol: layer2", []string{"spec.protocol", "unknown field"}},
	}
}

// inSchemaOnly reports whether only the schema can refuse a case: the Go types can't represent the value, or represent
// a different one.
func inSchemaOnly(name string) bool {
	switch name {
	case "quota of none", "negative priority", "reuseDelay without unit", "unknown field", "reservation without name":
		return true
	}
	return false
}

func (s *server) testBadPools(t *testing.T) {
	for _, c := range badPools() {
		t.Run(c.name, func(t *testing.T) {
			manifest := object("IPAddressPool", "bad", c.spec)
			refused(t, s.create(t.Context(), manifest), c.says)
			if inSchemaOnly(c.name) {
				return
			}
			var p v1alpha1.IPAddressPool
			if err := yaml.UnmarshalStrict([]byte(manifest), &p); err != nil {
				t.Fatal(err)
			}
			if errs := p.Validate(); len(errs) == 0 {
				t.Error("Validate accepts it")
			}
		})
	}
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
