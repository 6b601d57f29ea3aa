// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"errors"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// A shard for which no number is left fails alone, together with its addresses, and works as soon as another shard is
// removed.
func TestShardOverLimitFailsAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	d, _ := dial(t, s)
	routers := func() int { return strings.Count(s.nbctl(t, "lr-list"), "slb-lan-") }
	configure(t, d, topology(256))
	if n := routers(); n != 256 {
		t.Fatalf("%d routers of shards, want 256", n)
	}

	err := d.Configure(t.Context(), topology(257))
	last, shards := world.ShardID{Domain: "lan", Index: 256}, dataplane.ShardsError{}
	if !errors.As(err, &shards) || len(shards) != 1 || !strings.Contains(shards[last], "256 shards") {
		t.Fatalf("with one shard more: %v", err)
	}
	good, lost, half := service(1, 256, "10.244.1.10"), service(2, 256, "10.244.1.11"), service(3, 256, "10.244.1.12")
	for i := range lost.VIPs {
		lost.VIPs[i].Shard = last
	}
	half.VIPs[1].Shard = last
	failed := d.Apply(t.Context(), []dataplane.Change{{Key: good.Key, Want: good}, {Key: lost.Key, Want: lost},
		{Key: half.Key, Want: half}})
	if len(failed) != 2 || failed[lost.Key] == nil || !strings.Contains(failed[half.Key].Error(),
		"shard lan/256: no router number is available") {
		t.Errorf("failed: %v", failed)
	}
	out := s.nbctl(t, "lb-list")
	if strings.Count(out, "slb-default/s1") != 4 || strings.Count(out, "slb-default/s3") != 2 ||
		strings.Contains(out, "slb-default/s2") {
		t.Errorf("load balancers:\n%s", out)
	}

	fewer := topology(257)
	fewer.Domains[0].Shards = fewer.Domains[0].Shards[1:]
	if err := d.Configure(t.Context(), fewer); !errors.As(err, &shards) || routers() != 255 {
		t.Errorf("a number is free once the router that had it has gone: %v, %d routers", err, routers())
	}
	configure(t, d, fewer)
	apply(t, d, lost, half)
}
