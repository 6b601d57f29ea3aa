// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/sdn/site"
)

// services are dual-stack: twice as many addresses.
const services = 100

func TestSDN(t *testing.T) {
	r := start(t)
	if err := r.AddServices(t.Context(), "s", services); err != nil {
		t.Fatal(err)
	}
	held := r.settled(2 * services)
	loads := map[string]int{}
	for _, node := range held {
		loads[node]++
	}
	t.Log("addresses by node:", loads)
	if len(loads) != nodes {
		t.Errorf("only %v hold addresses", slices.Sorted(maps.Keys(loads)))
	}
	_ = context.Background
	_ = netip.Addr{}
	_ = site.Port
}
