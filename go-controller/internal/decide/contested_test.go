// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"go4.org/netipx"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/worldtest"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A host on the segment that answers for every address keeps no guard from probing others: the annotations with
// requests and replies stay within what a Lease may have, and each address that it does not answer for is announced.
func TestAHostThatAnswersForAllAddressesSilencesNoGuard(t *testing.T) {
	const first = 100 // the last byte of the first address
	honest, contested := 50, worldtest.Rounds(2000)
	end := first + contested
	firstHonest := netip.AddrFrom4([4]byte{10, 50, byte(end >> 8), byte(end)})
	var services []*world.Service
	for i := range contested + honest {
		services = append(services, worldtest.Service(world.Key{Namespace: "shop", Name: fmt.Sprint(i)}, i))
	}
	w := worldtest.Small(5, services...)
	w.Pools[0].Ranges[0] = netipx.MustParseIPRange("10.50.0.100-10.50.15.254")
	w.Domains[0].Subnets[0].Prefix = netip.MustParsePrefix("10.50.0.0/16")
	for _, n := range w.Nodes {
		n.Guarded = true
	}
	m := NewState(1)
	w.Now = time.Unix(1000, 0)
	var d *Decision
	for range 60 {
		w.Now = w.Now.Add(probeTimeout - time.Second)
		d = m.Decide(w)
		answerBelow(t, w, d.Probes, firstHonest) // those of the older Services
	}
	announced, held := 0, 0
	for _, s := range services {
		switch placement := d.Placements.Services[s.Key][0]; {
		case d.Plans[s.Key] != nil:
			announced++
		case placement.Reason == place.ReasonAddressConflict:
			held++
		}
	}
	if announced < honest || announced+held < len(services) {
		t.Errorf("%d announced, %d in conflict, of %d", announced, held, len(services))
	}
}

// answerBelow makes guards report that another host answers for each probed address below an address. It checks that
// the annotations of a Lease have room for that.
func answerBelow(t *testing.T, w *world.Snapshot, probes map[string][]world.ProbeRequest, end netip.Addr) {
	t.Helper()
	w.Reports, w.Probed = map[string]map[netip.Addr]world.Conflict{}, map[string][]string{}
	for node, requests := range probes {
		found := map[netip.Addr]convert.ConflictReport{}
		w.Reports[node] = map[netip.Addr]world.Conflict{}
		for _, q := range requests {
			w.Probed[node] = append(w.Probed[node], q.ID)
			for _, a := range q.Addresses {
				if a.Less(end) {
					found[a] = convert.ConflictReport{MAC: conflictingMAC, Since: w.Now, Probe: q.ID}
					w.Reports[node][a] = world.Conflict{MAC: conflictingMAC, Node: node, Since: w.Now, Probe: q.ID}
				}
			}
		}
		size := 0
		for annotation, value := range map[string]any{v1alpha1.AnnotationAddressProbes: requests,
			v1alpha1.AnnotationConflicts: found, v1alpha1.AnnotationProbed: w.Probed[node]} {
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			size += len(annotation) + len(text)
		}
		if size > 128<<10 {
			t.Fatalf("the annotations have %d bytes; half of 256 KiB must remain for what else is reported", size)
		}
	}
}
