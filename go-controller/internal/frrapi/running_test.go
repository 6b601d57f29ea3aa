// SPDX-License-Identifier: Apache-2.0

package frrapi_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// A prefix counts only if FRR originates it in the default VRF and lets it through to the neighbor.
func TestParseRunning(t *testing.T) {
	got, err := frrapi.ParseRunning(`Building configuration...
!
ip prefix-list 10.50.0.1-allowed-ipv4 seq 1 permit 203.0.113.2/32
ip prefix-list 10.50.0.1-allowed-ipv4 seq 2 permit 203.0.113.1/32
ip prefix-list 10.50.0.1-allowed-ipv4 seq 3 permit 203.0.113.9/32
ip prefix-list 10.50.0.1-allowed-ipv4 seq 4 permit 203.0.113.8/32
ip prefix-list 10.50.0.2-allowed-ipv4 seq 1 deny any
ip prefix-list 10.50.0.1-64512:7-ip-community-prefixes seq 1 permit 203.0.113.3/32
ipv6 prefix-list fd00:50::1-allowed-ipv6 seq 1 permit 2001:db8::1/128
!
router bgp 64512
 no bgp network import-check
 neighbor 10.50.0.1 remote-as 64513
 !
 address-family ipv4 unicast
  network 203.0.113.1/32
  network 203.0.113.2/32
  network 203.0.113.3/32
 exit-address-family
 !
 address-family ipv6 unicast
  network 2001:db8::1/128
 exit-address-family
exit
!
router bgp 64512 vrf red
 address-family ipv4 unicast
  network 203.0.113.9/32
 exit-address-family
exit
`)
	want := map[string]string{"10.50.0.1": "[203.0.113.1/32 203.0.113.2/32]", "fd00:50::1": "[2001:db8::1/128]"}
	if err != nil || len(got) != len(want) {
		t.Errorf("neighbors: %v (%v)", got, err)
	}
	for id, prefixes := range want {
		if text := fmt.Sprint(got[id]); text != prefixes {
			t.Errorf("%s: %s, want %s", id, text, prefixes)
		}
	}
}

// FRR's lists spell a neighbor as the FRRConfiguration does. It is the same neighbor in any notation.
func TestRunningNeighborInAnotherNotation(t *testing.T) {
	got, err := frrapi.ParseRunning(`ipv6 prefix-list FD00:50:0::1-allowed-ipv6 seq 1 permit 2001:db8::1/128
router bgp 64512
 neighbor fd00:50::1 remote-as 64513
 address-family ipv6 unicast
  network 2001:db8::1/128
 exit-address-family
exit
`)
	if err != nil || fmt.Sprint(got["fd00:50::1"]) != "[2001:db8::1/128]" {
		t.Errorf("%v (%v)", got, err)
	}
}

func FuzzParseRunning(f *testing.F) {
	f.Add("router bgp 1\n network 10.0.0.0/8\nip prefix-list a-allowed-ipv4 seq 1 permit 10.0.0.0/8\n")
	f.Fuzz(func(t *testing.T, text string) {
		running, _ := frrapi.ParseRunning(text)
		for id, prefixes := range running {
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
