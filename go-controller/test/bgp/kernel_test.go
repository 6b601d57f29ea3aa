// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
)

// kernel makes the router's kernel redirect the redirected port to BGP's, and record the TTL of each host's packets.
func kernel(t *testing.T, s *site) {
	t.Helper()
	rules := `table inet slb {
		set ttl4 { typeof ip saddr . ip ttl; flags dynamic; }
		set ttl6 { typeof ip6 saddr . ip6 hoplimit; flags dynamic; }
		chain pre {
			type nat hook prerouting priority -100
			tcp dport REDIRECTED redirect to :179
		}
		chain in {
			type filter hook input priority 0
			tcp dport 179 tcp flags & (syn|fin|rst) == 0 add @ttl4 { ip saddr . ip ttl }
			tcp dport 179 tcp flags & (syn|fin|rst) == 0 add @ttl6 { ip6 saddr . ip6 hoplimit }
		}
	}
	`
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", s.Netns, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(rules, "REDIRECTED", fmt.Sprint(redirected)))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
}

// ttl returns the TTL of the packets from a host to the BGP port of the router. More than one value is an error.
func (s *site) ttl(ctx context.Context, from string) (any, error) {
	set := "ttl4"
	if netip.MustParseAddr(from).Is6() {
		set = "ttl6"
	}
	out, err := exec.CommandContext(ctx, "ip", "netns", "exec", s.Netns, "nft", "-j", "list", "set", "inet", "slb", set).
		Output()
	if err != nil {
		return nil, err
	}
	var listing struct {
		Nftables []struct {
			Set struct {
				Elem []struct {
					Concat []any `json:"concat"`
				} `json:"elem"`
			} `json:"set"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(out, &listing); err != nil {
		return nil, err
	}
	var found []any
	for _, object := range listing.Nftables {
		for _, e := range object.Set.Elem {
			if len(e.Concat) == 2 && e.Concat[0] == from {
				found = append(found, e.Concat[1])
			}
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("TTLs of packets from %s: %v", from, found)
	}
	return found[0], nil
}
