// SPDX-License-Identifier: Apache-2.0

package frrapi_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// frr-k8s reads prefixes by net.ParseCIDR (internal/ipfamily). What it takes must not be invalid here, and have the
// same family and length.
func FuzzParsePrefix(f *testing.F) {
	for _, text := range []string{"10.0.0.0/8", "10.0.0.1/08", "10.0.0.0/0000000000008", "2001:DB8::/032", "10.0.0.0/33",
		"::ffff:10.0.0.0/104", "::ffff:10.0.0.0/08", "10.0.0.0", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/ 8", "fe80::%1/64",
		"010.0.0.0/8", "/8", "10.0.0.0/8/8", "10.0.0.0/18446744073709551624", "10.0.0.0/1_0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ip, network, err := net.ParseCIDR(text) //nolint:forbidigo // what is compared with
		p, ok := frrapi.ParsePrefix(text)
		if ok != (err == nil) {
			t.Fatalf("%q: %v, net.ParseCIDR: %v", text, ok, err)
		}
		if !ok {
			return
		}
		bits, _ := network.Mask.Size()
		if a, _ := netip.AddrFromSlice(ip); a.Unmap() != p.Addr().Unmap() || bits != p.Bits() ||
			frrapi.IPv4.Has(p) != (ip.To4() != nil) {
			t.Errorf("%q: %s", text, p)
		}
	})
}

// foreign returns an object with a router with some prefixes, neighbors, and prefixes with a local preference for each.
func foreign(prefixes, neighbors, preferences int) *frrapi.Spec {
	r := frrapi.Router{ASN: 64512}
	for i := range prefixes {
		r.Prefixes = append(r.Prefixes, fmt.Sprintf("172.16.%d.%d/32", i>>8, i&255))
	}
	for i := range neighbors {
		n := frrapi.Neighbor{Session: frrapi.Session{ASN: 1, Address: fmt.Sprintf("10.9.%d.%d", i>>8, i&255)}}
		n.Advertise.Allowed.Mode = frrapi.AllowAll
		if preferences > 0 {
			n.Advertise.LocalPref = []frrapi.LocalPrefPrefixes{{Prefixes: r.Prefixes[:preferences], LocalPref: 1}}
		}
		r.Neighbors = append(r.Neighbors, n)
	}
	return &frrapi.Spec{BGP: frrapi.BGP{Routers: []frrapi.Router{r}}}
}

// Of an object of others beyond the limits nothing counts, and the reason has the number. rawConfig is not limited.
func TestForeignConfigurationIsLimited(t *testing.T) {
	long := foreign(1, 1, 0)
	long.BGP.Routers[0].VRF = strings.Repeat("x", frrapi.MaxText)
	raw := foreign(1, 1, 0)
	raw.Raw.Config = strings.Repeat("!", frrapi.MaxText+1)
	imports := foreign(frrapi.MaxAdvertised, 1, 0)
	for range 10 {
		imports.BGP.Routers[0].Imports = append(imports.BGP.Routers[0].Imports, frrapi.Import{VRF: "default"})
	}
	for name, c := range map[string]struct {
		spec   *frrapi.Spec
		unread string
	}{
		"as much as is read":   {foreign(frrapi.MaxAdvertised, 8, 1000), ""},
		"as many neighbors":    {foreign(1, frrapi.MaxSections-1, 1), ""},
		"one neighbor more":    {foreign(1, frrapi.MaxSections, 1), "2049 routers, neighbors and BFD profiles, at most 2048"},
		"one prefix more":      {foreign(frrapi.MaxAdvertised+1, 1, 1), "8001 prefixes, at most 8000"},
		"more preferences":     {foreign(1001, 8, 1001), "8008 prefixes x neighbors with a local preference, at most 8000"},
		"many imports":         {imports, "80000 imported prefixes, at most 64000"},
		"a longer text":        {long, "bytes without rawConfig, at most 1048576"},
		"a text for FRR alone": {raw, ""},
	} {
		is := frrapi.ConvertForeign(c.spec)
		if !strings.Contains(is.Unread, c.unread) || (is.Unread == "") != (c.unread == "") || is.Invalid != nil {
			t.Errorf("%s: unread %q, invalid %v", name, is.Unread, is.Invalid)
		}
		if read := len(is.Routers) + len(is.Prefixes); (read == 0) != (c.unread != "") {
			t.Errorf("%s: %d routers and prefixes", name, read)
		}
	}
}

// frr-k8s admits one list per local preference and community, also if the lists have prefixes of different families.
func TestListsOfDifferentFamiliesAreOne(t *testing.T) {
	spec := foreign(1, 1, 1)
	r := &spec.BGP.Routers[0]
	r.Prefixes = append(r.Prefixes, "2001:db8::/64")
	n := &r.Neighbors[0]
	n.DualStack = true
	if is := frrapi.Convert(spec).Invalid; is != nil {
		t.Fatal(is)
	}
	n.Advertise.LocalPref = append(n.Advertise.LocalPref, frrapi.LocalPrefPrefixes{Prefixes: r.Prefixes[1:], LocalPref: 1})
	if is := frrapi.Convert(spec).Invalid; is == nil {
		t.Error("a second list with a local preference is admitted")
	}
}

// A message has a limited length, whatever an object has.
func TestProblemIsBounded(t *testing.T) {
	spec := foreign(0, 0, 0)
	spec.BGP.Routers[0].Prefixes = []string{strings.Repeat("\n", 10_000)}
	if is := frrapi.Convert(spec).Invalid; is == nil || len(is.Message) > 256 || strings.Contains(is.Message, "\n") {
		t.Errorf("%v", is)
	}
}
