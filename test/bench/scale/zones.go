// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/bench/subject"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// zoneFigures are the figures with interconnect.
type zoneFigures struct {
	// The controller and two agents start with empty databases: time until the zone of the gateway has the rows of every
	// Service.
	FillSeconds float64 `json:"fill_s,omitzero"`
	// Resources of each process after that.
	Controller usage `json:"controller,omitzero"`
	Gateway    usage `json:"agent_of_gateway,omitzero"`
	Worker     usage `json:"agent_of_other_node,omitzero"`
	// An endpoint of one Service changes on the gateway: time from the write to the API server until it is in the
	// northbound database of the node.
	CommitMedian float64        `json:"endpoint_to_nb_p50_ms,omitzero"`
	CommitP99    float64        `json:"endpoint_to_nb_p99_ms,omitzero"`
	Create       *createFigures `json:"create,omitempty"`
	// An agent restarts: time until it is ready, and its zone unchanged, has been compared.
	RestartSeconds float64 `json:"agent_restart_s,omitzero"`
	// A pod of each of RollPods Services is replaced within RollSeconds.
	RollPods    int     `json:"roll_pods,omitzero"`
	RollSeconds float64 `json:"roll_s,omitzero"`
	// ServicePlans that the controller wrote for that. The API server sends each to all agents, in an event of
	// RollEventBytes on average.
	RollWrites     float64 `json:"roll_serviceplan_writes,omitzero"`
	RollEventBytes float64 `json:"roll_event_bytes,omitzero"`
	// CPU time of each process for it.
	RollControllerCPU float64 `json:"roll_controller_cpu_s,omitzero"`
	RollGatewayCPU    float64 `json:"roll_agent_of_gateway_cpu_s,omitzero"`
	RollWorkerCPU     float64 `json:"roll_agent_of_other_node_cpu_s,omitzero"`
}

// usage is CPU time since the start of a process, and its resident memory: when idle, and its peak.
type usage struct {
	CPU  float64 `json:"cpu_s"`
	RSS  float64 `json:"rss_mb"`
	Peak float64 `json:"peak_rss_mb"`
}

const (
	// zoneChanges is the number of endpoint changes on the gateway, one at a time.
	zoneChanges = 40
	// rollPods and rollRate are how many pods are replaced, and how many each second.
	rollPods, rollRate = 1000, 50
)

// zone is a node with its own databases.
type zone struct {
	node        int
	dir, nb, sb string
	agent       *subject.Controller
}

// transit returns the address of a node on the transit switch.
func transit(i int) string { return fmt.Sprintf("100.88.%d.%d", (i+2)/256, (i+2)%256) }

// measureZones starts all processes and measures. Node 0 is the gateway. The other zone is that of the last node.
func (s *site) measureZones(ctx context.Context, program string) (err error) {
	if err := s.buildPlane(ctx, program); err != nil {
		return err
	}
	var zones [2]*zone
	defer func() {
		for _, z := range zones {
			if z != nil {
				err = errors.Join(err, proc.KillRecorded(z.dir))
			}
		}
	}()
	for i, node := range []int{0, s.result.Nodes - 1} {
		z := &zone{node: node, dir: filepath.Join(s.dir, nodeName(node))}
		zones[i] = z
		if err := s.buildZone(ctx, z); err != nil {
			return err
		}
	}
	s.logf("databases and ovn-northd of %d zones run", len(zones))
	if err := s.objects(ctx); err != nil {
		return err
	}
	if s.north, err = startWatch(ctx, zones[0].nb); err != nil {
		return err
	}
	if err := s.fillZones(ctx, zones[0], zones[1]); err != nil {
		return err
	}
	if err := s.changeZone(ctx); err != nil {
		return err
	}
	if err := s.create(ctx, zones[0], zones[1]); err != nil {
		return err
	}
	if err := s.roll(ctx, zones[0], zones[1]); err != nil {
		return err
	}
	return s.restartAgent(ctx, zones[0])
}

// buildZone starts the databases and ovn-northd of a zone, with the rows of OVN-Kubernetes that an agent reads.
func (s *site) buildZone(ctx context.Context, z *zone) (err error) {
	if err := os.MkdirAll(z.dir, 0o755); err != nil {
		return err
	}
	if z.nb, z.sb, err = serve(ctx, z.dir); err != nil {
		return err
	}
	if err := s.fillZoneNorth(ctx, z); err != nil {
		return err
	}
	mapping := "physnet:br-phys"
	if z.node != 0 {
		mapping = "other:br-other"
	}
	if out, err := exec.CommandContext(ctx, "ovn-sbctl", "--db="+z.sb, "--timeout=60", "chassis-add", chassis(z.node),
		"geneve", "172.16.0.1", "--", "set", "Chassis", chassis(z.node),
		"other_config:ovn-bridge-mappings="+mapping).CombinedOutput(); err != nil {
		return fmt.Errorf("fill the southbound database: %w: %s", err, out)
	}
	return startNorthd(ctx, z.dir, z.nb, z.sb)
}

// fillZoneNorth writes the rows of the node, and the ports of all other nodes on the transit switch.
func (s *site) fillZoneNorth(ctx context.Context, z *zone) error {
	node := nodeName(z.node)
	err := subject.Fill(ctx, z.nb,
		"lr-add", "ovn_cluster_router", "--", "ls-add", "join", "--", "ls-add", "transit_switch",
		"--", "lrp-add", "ovn_cluster_router", "rtoj-ovn_cluster_router", "0a:58:64:40:00:01", "100.64.0.1/16",
		"--", "lrp-add", "ovn_cluster_router", "rtots-"+node, "0a:58:64:58:00:02", transit(z.node)+"/16",
		"--", "lsp-add", "transit_switch", "tstor-"+node, "--", "lsp-set-type", "tstor-"+node, "router",
		"--", "lsp-set-addresses", "tstor-"+node, "router", "--", "lsp-set-options", "tstor-"+node,
		"router-port=rtots-"+node,
		"--", "ls-add", node, "--", "lrp-add", "ovn_cluster_router", "rtos-"+node, "0a:58:0a:80:00:02", pods(z.node)+"1/24",
		"--", "lsp-add", node, "stor-"+node, "--", "lsp-set-type", "stor-"+node, "router",
		"--", "lsp-set-addresses", "stor-"+node, "router", "--", "lsp-set-options", "stor-"+node, "router-port=rtos-"+node,
		"--", "lr-add", "GR_"+node, "--", "set", "Logical_Router", "GR_"+node, "options:chassis="+chassis(z.node),
		"options:lb_force_snat_ip=router_ip",
		"--", "lrp-add", "GR_"+node, "rtoj-GR_"+node, "0a:58:64:40:00:02", "100.64.0.2/16")
	if err != nil {
		return err
	}
	const batch = 200
	for from := 0; from < s.result.Nodes; from += batch {
		var args []string
		for i := from; i < min(from+batch, s.result.Nodes); i++ {
			if port := "tstor-" + nodeName(i); i != z.node {
				args = append(args, "--", "lsp-add", "transit_switch", port, "--", "lsp-set-type", port, "remote")
			}
		}
		if err := subject.Fill(ctx, z.nb, args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// cloneReports waits for the report of a node's agent, and writes it for all nodes that have no agent. The controller
// sends traffic only to nodes that an agent programs.
func (s *site) cloneReports(ctx context.Context, of *zone) error {
	leases := s.client.CoordinationV1().Leases(v1alpha1.GuardsNamespace)
	var report *coordinationv1.Lease
	for tick := time.NewTicker(100 * time.Millisecond); report == nil; {
		lease, err := leases.Get(ctx, nodeName(of.node), metav1.GetOptions{})
		if err == nil && lease.Annotations[v1alpha1.AnnotationZone] != "" {
			report = lease
			tick.Stop()
			break
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range s.result.Nodes {
		if i == 0 || i == of.node {
			continue
		}
		g.Go(func() error {
			name, lasts := nodeName(i), int32(patience.Seconds())
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: report.Annotations},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &lasts,
					RenewTime: report.Spec.RenewTime}}
			_, err := leases.Create(ctx, lease, metav1.CreateOptions{})
			return err
		})
	}
	return g.Wait()
}

// fillZones starts the agents and the controller.
func (s *site) fillZones(ctx context.Context, gateway, worker *zone) (err error) {
	for _, z := range []*zone{gateway, worker} {
		if z.agent, err = s.subject.StartAgent(ctx, nodeName(z.node), z.nb, z.sb); err != nil {
			return err
		}
	}
	if err := s.cloneReports(ctx, worker); err != nil {
		return err
	}
	s.logf("each node has the report of an agent")
	began := time.Now()
	if err := s.start(ctx, "fill"); err != nil {
		return err
	}
	last := began
	// The zone may rest while statuses are written. The Services are listed only then: that delays the fill, too.
	if err := poll(ctx, func() (bool, error) {
		if last, err = quiet(ctx, gateway.dir); err != nil || !last.After(began) {
			return false, err
		}
		return s.addressed(ctx)
	}); err != nil {
		return fmt.Errorf("wait until each Service has an address (log %s): %w", s.running.Log(), err)
	}
	if err := s.running.Settle(ctx); err != nil {
		return err
	}
	f := s.result.Zones
	f.FillSeconds = seconds(last.Sub(began))
	f.Controller, err = usageOf(s.running)
	for z, into := range map[*zone]*usage{gateway: &f.Gateway, worker: &f.Worker} {
		var of error
		*into, of = usageOf(z.agent)
		err = errors.Join(err, of)
	}
	s.logf("the zone of the gateway is filled after %.1f s; agents have %.0f MB there and %.0f MB on another node",
		f.FillSeconds, f.Gateway.RSS, f.Worker.RSS)
	s.profile(ctx, gateway.agent, "heap", "agent.heap")
	return errors.Join(err, s.eventsWritten(ctx), s.save())
}

func usageOf(c *subject.Controller) (u usage, err error) {
	if u.CPU, u.RSS, err = c.Usage(); err != nil {
		return u, err
	}
	u.Peak, err = c.Peak()
	return u, err
}

// changeZone changes endpoints on the gateway, one after the other.
func (s *site) changeZone(ctx context.Context) error {
	var commit []time.Duration
	for n := range min(zoneChanges, s.result.Services*s.result.Endpoints/s.result.Nodes) {
		// The first endpoint of each of these Services is on node 0.
		_, took, err := s.move(ctx, n*s.result.Nodes/s.result.Endpoints)
		if err != nil {
			return err
		}
		commit = append(commit, took)
	}
	f := s.result.Zones
	f.CommitMedian, f.CommitP99 = quantile(commit, 0.5), quantile(commit, 0.99)
	s.logf("an endpoint reaches the northbound database of its node within %.0f ms (median; %.0f ms p99)", f.CommitMedian,
		f.CommitP99)
	return s.save()
}

// roll replaces pods, one of each of many Services, at a steady rate.
func (s *site) roll(ctx context.Context, gateway, worker *zone) error {
	processes := []*subject.Controller{s.running, gateway.agent, worker.agent}
	before, writes, err := s.cost(ctx, processes)
	if err != nil {
		return err
	}
	f := s.result.Zones
	tick := time.NewTicker(time.Second / rollRate)
	defer tick.Stop()
	began := time.Now()
	for i := 1; f.RollPods < min(rollPods, s.result.Services/2); i++ {
		endpoint := i % s.result.Endpoints
		if (i*s.result.Endpoints+endpoint)%s.result.Nodes == 0 {
			continue // Few addresses are left on the gateway.
		}
		slice := s.movedSlice(i, endpoint)
		if _, err := s.client.DiscoveryV1().EndpointSlices(namespace).Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
			return err
		}
		f.RollPods++
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	f.RollSeconds = seconds(time.Since(began))
	if err := s.running.Settle(ctx); err != nil {
		return err
	}
	if _, err := quiet(ctx, gateway.dir); err != nil {
		return err
	}
	after, now, err := s.cost(ctx, processes)
	if err != nil {
		return err
	}
	events := now.events - writes.events
	if f.RollWrites = now.writes - writes.writes; f.RollWrites == 0 || events == 0 {
		return fmt.Errorf("the API server counts %.0f writes and %.0f events of ServicePlans", f.RollWrites, events)
	}
	f.RollEventBytes = math.Round((now.bytes - writes.bytes) / events)
	f.RollControllerCPU, f.RollGatewayCPU, f.RollWorkerCPU = after[0]-before[0], after[1]-before[1], after[2]-before[2]
	s.logf("%d pods replaced within %.1f s: %.0f ServicePlans written, events of %.0f bytes to each agent, CPU "+
		"%.2f s controller, %.2f s gateway, %.2f s other node", f.RollPods, f.RollSeconds, f.RollWrites, f.RollEventBytes,
		f.RollControllerCPU, f.RollGatewayCPU, f.RollWorkerCPU)
	return s.save()
}

// restartAgent restarts the agent of a zone that is complete.
func (s *site) restartAgent(ctx context.Context, z *zone) (err error) {
	if err := z.agent.Terminate(ctx); err != nil {
		return err
	}
	began := time.Now()
	if z.agent, err = s.subject.StartAgent(ctx, nodeName(z.node), z.nb, z.sb); err != nil {
		return err
	}
	moved, took, err := s.move(ctx, 0)
	if err != nil {
		return err
	}
	s.result.Zones.RestartSeconds = seconds(moved.Add(took).Sub(began))
	s.logf("an agent that starts is in sync after %.1f s", s.result.Zones.RestartSeconds)
	return s.save()
}

// planCost is what ServicePlans have cost the API server: writes, and the events sent to all watchers and their bytes.
type planCost struct{ writes, events, bytes float64 }

// cost returns the CPU time of processes and the costs of ServicePlans.
func (s *site) cost(ctx context.Context, processes []*subject.Controller) (cpu []float64, c planCost, err error) {
	for _, p := range processes {
		used, _, err := p.Usage()
		if err != nil {
			return nil, c, err
		}
		cpu = append(cpu, used)
	}
	text, err := s.plane.Kubectl(ctx, "get", "--raw", "/metrics")
	if err != nil {
		return nil, c, err
	}
	for pattern, into := range map[string]*float64{
		`apiserver_request_total\{.*resource="serviceplans".*verb="(?:POST|PUT|PATCH|APPLY)".*\}`: &c.writes,
		`apiserver_watch_events_total\{.*(?:kind="ServicePlan"|resource="serviceplans").*\}`:      &c.events,
		`apiserver_watch_events_sizes_sum\{.*(?:kind="ServicePlan"|resource="serviceplans").*\}`:  &c.bytes,
	} {
		for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				return nil, c, fmt.Errorf("metric %s: %w", m[0], err)
			}
			*into += n
		}
	}
	return cpu, c, nil
}
