// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func parsed(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &u
}

// What a claim says in each version of the contract, and what is wrong with the IPAddress that it names.
func TestClaim(t *testing.T) {
	address := func(of, value string) string {
		return "{metadata: {name: a}, spec: {claimRef: {name: " + of + "}, address: \"" + value + "\", prefix: 24}}"
	}
	const fulfilled = "status: {addressRef: {name: a}}"
	for name, c := range map[string]struct {
		status, address string
		want            world.Claim
	}{
		"new":       {want: world.Claim{}},
		"fulfilled": {fulfilled, address("c", "192.0.2.1"), world.Claim{Addr: netip.MustParseAddr("192.0.2.1")}},
		"fulfilled over IPv6": {fulfilled, address("c", "2001:db8::1"),
			world.Claim{Addr: netip.MustParseAddr("2001:db8::1")}},
		"no IPAddress": {fulfilled, "", world.Claim{Problem: "IPAddress a does not exist"}},
		"of another claim": {fulfilled, address("d", "192.0.2.1"),
			world.Claim{Problem: `IPAddress a belongs to another claim (spec.claimRef.name: "d")`}},
		"no address": {fulfilled, address("c", "192.0.2.0/24"), world.Claim{Problem: `IPAddress a has no address: ` +
			`spec.address: "192.0.2.0/24" is no IPv4 or IPv6 address`}},
		"a zone": {fulfilled, address("c", "fe80::1%eth0"), world.Claim{Problem: `IPAddress a has no address: ` +
			`spec.address: "fe80::1%eth0" is no IPv4 or IPv6 address`}},
		"mapped": {fulfilled, address("c", "::ffff:192.0.2.1"), world.Claim{Problem: `IPAddress a has no address: ` +
			`spec.address: "::ffff:192.0.2.1" is no IPv4 or IPv6 address`}},
		"multicast": {fulfilled, address("c", "224.0.0.1"), world.Claim{Problem: `IPAddress a has an address that no ` +
			`Service can have: spec.address: 224.0.0.1 is not unicast`}},
		"mapped without dots": {fulfilled, address("c", "::ffff:c000:201"), world.Claim{Problem: `IPAddress a has an ` +
			`address that no Service can have: spec.address: ::ffff:192.0.2.1 is reserved`}},
		"this network": {fulfilled, address("c", "0.1.2.3"), world.Claim{Problem: `IPAddress a has an address that no ` +
			`Service can have: spec.address: 0.1.2.3 is reserved`}},
		"NAT64": {fulfilled, address("c", "64:ff9b::1"), world.Claim{Problem: `IPAddress a has an address that no ` +
			`Service can have: spec.address: 64:ff9b::1 is reserved`}},
		"link-local": {fulfilled, address("c", "169.254.0.1"), world.Claim{Problem: `IPAddress a has an address that no ` +
			`Service can have: spec.address: 169.254.0.1 is not unicast`}},
		"loopback": {fulfilled, address("c", "127.0.0.1"), world.Claim{Problem: `IPAddress a has an address that no ` +
			`Service can have: spec.address: 127.0.0.1 is not unicast`}},
		"refused": {"status: {conditions: [{type: Ready, status: 'False', reason: PoolExhausted, message: 'none left'}]}", "",
			world.Claim{Refusal: "PoolExhausted: none left"}},
		"refused in v1beta1's own conditions of v1beta2": {
			"status: {v1beta2: {conditions: [{type: Ready, status: 'False', reason: PoolNotReady}]}}", "",
			world.Claim{Refusal: "PoolNotReady"}},
		"progress": {"status: {conditions: [{type: Ready, status: Unknown, reason: Waiting}]}", "", world.Claim{}},
		"refused and fulfilled": {fulfilled[:len(fulfilled)-1] + ", conditions: [{type: Ready, status: 'False'}]}",
			address("c", "192.0.2.1"), world.Claim{Addr: netip.MustParseAddr("192.0.2.1")}},
		"no strings": {"status: {addressRef: {name: 7}, conditions: [7, {type: 7}]}", "", world.Claim{}},
	} {
		addresses := map[string]*unstructured.Unstructured{}
		if c.address != "" {
			addresses["a"] = parsed(t, c.address)
		}
		u := parsed(t, "metadata: {name: c, annotations: {"+v1alpha1.AnnotationIPAddressPool+": p}, finalizers: ["+
			v1alpha1.FinalizerClaim+"]}\nspec: {poolRef: {apiGroup: g.io, kind: Pool, name: p1}}\n"+c.status)
		c.want.Name, c.want.Pool, c.want.Kept = "c", "p", true
		c.want.Ref = world.PoolRef{APIGroup: "g.io", Kind: "Pool", Name: "p1"}
		if diff := cmp.Diff(&c.want, Claim(u, addresses), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Neither a provider nor who writes IPAddresses makes statuses grow or terminals obey.
func TestTextsOfClaimsAreBounded(t *testing.T) {
	u := parsed(t, "metadata: {name: c}\nstatus: {conditions: [{type: Ready, status: 'False', reason: R, "+
		"message: \"\\e[31m"+strings.Repeat("x", 5000)+"\"}]}")
	got := Claim(u, nil).Refusal
	if len(got) > maxForeignText || strings.Contains(got, "\x1b") {
		t.Errorf("refusal %q", got)
	}
	u = parsed(t, "metadata: {name: c}\nstatus: {addressRef: {name: "+strings.Repeat("x", 5000)+"}}")
	if got := Claim(u, nil).Problem; len(got) > 2*maxForeignText {
		t.Errorf("problem %q", got)
	}
}

// A created claim is one of ours, and reads as what was wanted.
func TestNewClaim(t *testing.T) {
	w := &world.WantedClaim{Name: "c", Pool: "p", Ref: world.PoolRef{APIGroup: "g.io", Kind: "Pool", Name: "p1"},
		Service: world.Key{Namespace: "shop", Name: "web"}, UID: "u"}
	u := NewClaim(w, "home", schema.GroupVersion{Group: claimGroup, Version: "v1beta1"})
	got := Claim(u, nil)
	if want := (&world.Claim{Name: "c", Namespace: "shop", UID: "u", Pool: "p", Ref: w.Ref, Kept: true}); *got != *want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !IsOurClaim(u) || u.GetAPIVersion() != "ipam.cluster.x-k8s.io/v1beta1" || u.GetNamespace() != "home" {
		t.Errorf("created %v", u.Object)
	}
}
