// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// testOverlap compares new pools with an existing one.
func (s *server) testOverlap(t *testing.T) {
	s.apply(t, object("IPAddressPool", "old", `
addresses: [10.7.0.0/24, 10.7.8.10-10.7.8.99, "fd00:7::/112", "fd00:7::1:10-fd00:7::1:ff"]
exclude: [10.7.0.0/28]`))
	s.deleteAfter(t, "ipaddresspool", "old")
	// The policy compares with the pools that the API server's own watch has delivered, shortly after each was stored.
	await.True(t, "the policy knows the old pool", func() bool {
		err := s.create(t.Context(), pool("new", `[10.7.0.0/24]`))
		return err != nil && strings.Contains(err.Error(), "of IPAddressPool old")
	})

	for _, c := range []struct {
		name, addresses string
		says            []string
	}{
		{"the same CIDR", `[10.7.0.0/24]`, []string{"10.7.0.0/24 overlaps 10.7.0.0/24"}},
		{"CIDR around", `[10.6.0.0/15]`, []string{"10.6.0.0/15 overlaps 10.7.0.0/24"}},
		{"CIDR within", `[10.7.0.128/25]`, []string{"10.7.0.128/25 overlaps 10.7.0.0/24"}},
		{"address in CIDR", `[10.0.0.1, 10.7.0.77]`, []string{"10.7.0.77 overlaps 10.7.0.0/24"}},
		{"range over the start of a CIDR", `[10.6.255.0-10.7.0.20]`, []string{"10.6.255.0-10.7.0.20 overlaps 10.7.0.0/24"}},
		{"CIDR over the end of a range", `[10.7.8.96/28]`, []string{"10.7.8.96/28 overlaps 10.7.8.10-10.7.8.99"}},
		{"range over the start of a range", `[10.7.8.1 - 10.7.8.10]`,
			[]string{"10.7.8.1 - 10.7.8.10 overlaps 10.7.8.10-10.7.8.99"}},
		{"IPv6 CIDR around", `["fd00:7::/64"]`, []string{"fd00:7::/64 overlaps fd00:7::/112"}},
		{"IPv6 range, other spelling", `["FD00:7:0:0:0:0:1:00FF-fd00:7::2:0"]`,
			[]string{"FD00:7:0:0:0:0:1:00FF-fd00:7::2:0 overlaps fd00:7::1:10-fd00:7::1:ff"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			refused(t, s.create(t.Context(), pool("new", c.addresses)), append(c.says, "spec.addresses: ",
				"of IPAddressPool old"))
		})
	}
	for name, manifest := range map[string]string{
		"neighbours": pool("new",
			`[10.7.1.0/24, 10.7.8.9, 10.7.8.100-10.7.8.200, "fd00:7::1:0-fd00:7::1:f", "fd00:7::1:100"]`),
		"what the old pool excludes": pool("new", `[10.7.0.0-10.7.0.15]`),
		"what both exclude": object("IPAddressPool", "new",
			"addresses: [10.7.8.0/24]\nexclude: [10.7.8.8-10.7.8.100]"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.create(t.Context(), manifest); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("an edit", func(t *testing.T) {
		s.apply(t, pool("new", `[10.9.0.0/24]`))
		s.deleteAfter(t, "ipaddresspool", "new")
		refused(t, s.Apply(t.Context(), pool("new", `[10.9.0.0/24, 10.7.8.50]`)), []string{"spec.addresses: 10.7.8.50 overlaps 10.7.8.10-10.7.8.99 of IPAddressPool old"})
		s.apply(t, pool("new", `[10.9.0.0/23]`))
		s.kubectl(t, "label", "ipaddresspool", "old", "a=b")
	})
}

// testAgreement compares the decisions of the API server and of Go for pools in a small address range, where entries
// touch each other.
func (s *server) testAgreement(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	good := 0
	for range 400 {
		manifest := object("IPAddressPool", "random", "addresses: "+randomEntries(random,
			1+random.IntN(3))+"\nexclude: "+randomEntries(random, random.IntN(3)))
		err := s.create(t.Context(), manifest)
		var p v1alpha1.IPAddressPool
		if err := yaml.UnmarshalStrict([]byte(manifest), &p); err != nil {
			t.Fatal(err)
		}
		errs := p.Validate()
		if (err == nil) != (len(errs) == 0) {
			t.Errorf("the API server returns %v, Go returns %v for\n%s", err, errs.ToAggregate(), manifest)
		}
		if err == nil {
			good++
		} else {
			refused(t, err, nil)
		}
	}
	if good < 40 || good > 360 {
		t.Errorf("%d of 400 pools are good: too few of one sort to compare", good)
	}
}

// randomEntries returns a YAML list of entries within 64 addresses of either family, around a carry between octets or
// groups.
func randomEntries(random *rand.Rand, n int) string {
	texts := []string{}
	for range n {
		base := netip.MustParseAddr("10.0.0.224")
		if random.IntN(2) == 0 {
			base = netip.MustParseAddr("fd00::ffe0")
		}
		at := func() netip.Addr {
			a := base
			for range random.IntN(64) {
				a = a.Next()
			}
			return a
		}
		first := at()
		switch random.IntN(3) {
		case 0:
			texts = append(texts, fmt.Sprintf("%q", first))
		case 1:
			texts = append(texts, fmt.Sprintf("%q", first.String()+"-"+at().String()))
		case 2:
			p, err := first.Prefix(first.BitLen() - random.IntN(5))
			if err != nil {
				panic(err)
			}
			texts = append(texts, fmt.Sprintf("%q", p))
		}
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// testLargestPool fills every list of two pools with the longest texts. The validation rules and the policy must
// succeed.
func (s *server) testLargestPool(t *testing.T) {
	largest := func(name string, group int) string {
		var spec strings.Builder
		list := func(format string, n int) {
			for i := range n {
				fmt.Fprintf(&spec, format, 0xa000+group, 0x1000+i)
			}
		}
		spec.WriteString("addresses:\n")
		list("- \"FD00:BBBB:CCCC:DDDD:%[1]X:%[2]X:1111:1111 - FD00:BBBB:CCCC:DDDD:%[1]X:%[2]X:EEEE:EEEE\"\n", 32)
		spec.WriteString("exclude:\n")
		list("- \"FD00:BBBB:CCCC:DDDD:%[1]X:%[2]X:2222:1111 - FD00:BBBB:CCCC:DDDD:%[1]X:%[2]X:2222:EEEE\"\n", 32)
		spec.WriteString("reservations:\n")
		for i := range 256 {
			fmt.Fprintf(&spec, "- {namespace: ns, name: s%d, addresses: [\"FD00:BBBB:CCCC:DDDD:%X:101F:3333:%X\"]}\n", i,
				0xa000+group, 0x1000+i)
		}
		return object("IPAddressPool", name, spec.String())
	}
	s.apply(t, largest("large", 0))
	s.deleteAfter(t, "ipaddresspool", "large")
	s.fillLeases(t, "large")
	if err := s.create(t.Context(), largest("larger", 1)); err != nil {
		t.Errorf("a second one: %v", err)
	}
	// A policy over its cost limit would always admit the twin.
	await.True(t, "the twin is refused", func() bool {
		err := s.create(t.Context(), largest("twin", 0))
		return err != nil && strings.Contains(err.Error(), "of IPAddressPool large")
	})
}

// fillLeases gives a large pool the maximum number of annotations and leases, of maximum length. etcd must accept the
// object.
func (s *server) fillLeases(t *testing.T, name string) {
	t.Helper()
	pools := s.dynamic.Resource(resources()["IPAddressPool"])
	p, err := pools.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.SetAnnotations(map[string]string{"notes": strings.Repeat("x", 255<<10)})
	if p, err = pools.Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("x", 63)
	lease := func(i int) any {
		return map[string]any{"address": fmt.Sprintf("fd00:bbbb:cccc:dddd:1000:101f:3333:%x", 0x1000+i), "namespace": longest,
			"name": longest, "releasedAt": "2026-01-01T00:00:00Z"}
	}
	var leases []any
	for i := range v1alpha1.MaxLeases {
		leases = append(leases, lease(i))
	}
	p.Object["status"] = map[string]any{"leases": leases}
	if p, err = pools.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("%d leases: %v", len(leases), err)
	}
	p.Object["status"] = map[string]any{"leases": append(leases, lease(len(leases)))}
	_, err = pools.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	refused(t, err, []string{"status.leases", "must have at most 5000 items"})
}
