// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestZoneReportsAreReadAsTheyWereWritten(t *testing.T) {
	shard := world.ShardID{Domain: "lan", Index: 3}
	want := &world.ZoneAgent{
		Bridges: world.Bridges{"physnet": "br-ex"}, Applied: 7, Problem: "no room",
		Unwritable: "no database",
		Claims:     map[world.ShardID]time.Time{shard: time.Unix(1000, 0).UTC()},
		Contested:  map[world.ShardID]bool{shard: true},
		Failed:     map[world.Key]string{{Namespace: "shop", Name: "web"}: "no row"},
	}
	text, err := ZoneReport(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := readZone(text); !got.Equal(want) {
		t.Errorf("%s is read as %+v", text, got)
	}
	if got := readZone("{"); got != nil {
		t.Errorf("an invalid report is read as %+v", got)
	}
}
