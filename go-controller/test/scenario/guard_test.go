// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/nodelease"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// probeTime is how long a guard takes to probe an address.
const probeTime = time.Second

// guard stands for the guard of a node, which needs a real Open vSwitch. It probes addresses as requested in the Lease
// of its node.
type guard struct {
	node   string
	leases coordinationclient.LeaseInterface
	report *nodelease.Reporter
	// occupied are the addresses that other hosts have, with their MAC addresses. Nothing changes it while processes run.
	occupied map[netip.Addr]string

	mu        sync.Mutex
	conflicts map[netip.Addr]convert.ConflictReport
	// faults are those of networks, by their names.
	faults map[string]world.Fault
}

func (g *guard) run(ctx context.Context) {
	g.setFault("", world.Fault{})
	kube.NewOneLeaseInformer(g.leases, g.node, func(_, now *coordinationv1.Lease) {
		if now == nil {
			g.report.Renew()
			return
		}
		time.AfterFunc(probeTime, func() {
			if ctx.Err() == nil {
				g.probed(now)
			}
		})
	}).RunWithContext(ctx)
}

// setFault reports a fault of a network, or that it has none.
func (g *guard) setFault(network string, fault world.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.faults == nil {
		g.faults = map[string]world.Fault{}
	}
	if g.faults[network] = fault; fault.Message == "" {
		delete(g.faults, network)
	}
	if text, err := convert.FaultsReport(g.faults); err == nil { // Maps of strings can be encoded.
		g.report.ReportAtOnce(v1alpha1.AnnotationFaults, text, false)
	}
}

// probed reports the results of the probe requests in a Lease.
func (g *guard) probed(l *coordinationv1.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.conflicts
	g.conflicts = map[netip.Addr]convert.ConflictReport{}
	ids := []string{}
	for _, request := range convert.ProbeRequests(l) {
		ids = append(ids, request.ID)
		for _, a := range request.Addresses {
			mac, occupied := g.occupied[a]
			if !occupied {
				continue
			}
			found := convert.ConflictReport{MAC: mac, Since: time.Now().UTC(), Probe: request.ID}
			if known, was := before[a]; was && known.Probe == request.ID {
				found = known
			}
			g.conflicts[a] = found
		}
	}
	g.write(v1alpha1.AnnotationConflicts, g.conflicts)
	g.write(v1alpha1.AnnotationProbed, ids)
}

func (g *guard) write(annotation string, what any) {
	if text, err := json.Marshal(what); err == nil { // Maps of strings and times can be encoded.
		g.report.Report(annotation, string(text), false)
	}
}
