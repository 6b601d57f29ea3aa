// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/decide"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/loop"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/report"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/testing/golden"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// passes is the number of passes of the controller after which the statuses no longer change.
const passes = 5

// scenario is a cluster with a controller, which writes the statuses of the objects with the code of the product.
type scenario struct {
	*objects.Objects
	question Question
	address  netip.Addr
	observed report.Observed
	bridges  map[string]world.Bridges
	// noClaims means that no chassis has claimed a shard. notApplied means that no zone has applied a plan.
	noClaims, notApplied bool
	// rivals are nodes that have claimed all shards besides the active gateways.
	rivals []string
	// applied are the addresses that zones have applied, with interconnect.
	applied map[world.Key][]netip.Addr
	// conflicts are the MAC addresses of other hosts that answer for addresses, and taken those of hosts that answer for
	// addresses that are announced. probes are the current probe requests.
	conflicts map[netip.Addr]string
	taken     map[netip.Addr]string
	probes    map[string][]world.ProbeRequest
	state     decide.State
	// pendingSince is since when ovn-northd has not translated the rows, the zero time if it has.
	pendingSince time.Time
	// leader is when the controller has renewed its Lease, "released" if it has stopped, "none" if there is no Lease, and
	// empty for now.
	leader string
	// denied are resources that the user must not read.
	denied []string
	// later are objects that replace others after the last pass of the controller.
	later []byte
	// refused is the dataplane's error about each Service.
	refused error
}

// TestGolden breaks one thing in the cluster of base.yaml, and explains Service shop/web. TestOverviewGolden does so
// for the overview, and TestAddressGolden explains an address. The files of an archive are
//
//	manifests.yaml  objects that replace those of base.yaml, or are added
//	without         lines KIND/NAME: objects of base.yaml that do not exist
//	bridges         lines "CHASSIS NETWORK:BRIDGE": bridges in place of provider:br-provider
//	observed        what the controller observes: lines "unclaimed", "unapplied", "untranslated",
//	                "rival CHASSIS", "unreachable TEXT", "conflict ADDRESS MAC", "taken ADDRESS MAC" (once it is
//	                announced) and "refused TEXT"
//	address         the address that TestAddressGolden explains
//	from            the address of a client
//	probes          what the user's machine observed: lines "ADDRESS:PORT [REASON MESSAGE]"
//	leader          when the controller has renewed its Lease (RFC 3339), released, or none
//	later.yaml      objects that the controller has not seen, as manifests.yaml
//	unread          resources that the user must not read
//	want            the explanation
func TestGolden(t *testing.T) {
	runScenarios(t, "testdata/*.txtar", func(s *scenario) string { return Explain(s.Objects, s.question).Text(Plain, 0) })
}

func TestAddressGolden(t *testing.T) {
	runScenarios(t, "testdata/address/*.txtar", func(s *scenario) string {
		return Address(s.Objects, s.address, s.question).Text(Plain, 0)
	})
}

func runScenarios(t *testing.T, pattern string, text func(*scenario) string) {
	t.Helper()
	base, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden.RunArchives(t, pattern, func(archive *txtar.Archive) (string, error) {
		s, err := run(base, archive)
		if err != nil {
			return "", err
		}
		return text(s), nil
	})
}

// run returns the scenario after the passes of the controller.
func run(base []byte, archive *txtar.Archive) (*scenario, error) {
	s, err := read(base, archive)
	if err != nil {
		return nil, err
	}
	for range passes {
		s.pass()
		s.question.Now = s.question.Now.Add(2 * time.Second)
	}
	if _, err := s.Set(s.later); err != nil {
		return nil, err
	}
	if err := s.lead(); err != nil {
		return nil, err
	}
	s.deny()
	return s, nil
}

func read(base []byte, archive *txtar.Archive) (*scenario, error) {
	s := &scenario{Objects: &objects.Objects{}, conflicts: map[netip.Addr]string{},
		taken: map[netip.Addr]string{}, applied: map[world.Key][]netip.Addr{}, state: decide.NewState(1),
		bridges:  map[string]world.Bridges{},
		question: Question{Service: world.Key{Namespace: "shop", Name: "web"}, Now: time.Unix(1767225700, 0)},
		observed: report.Observed{Synced: true, Configured: true, Programmed: map[world.Key]loop.Result{}}}
	if _, err := s.Set(base); err != nil {
		return nil, err
	}
	for _, n := range s.Nodes {
		s.bridges["c"+n.Name[1:]] = world.ParseBridges("provider:br-provider")
	}
	for _, f := range archive.Files {
		lines := strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		switch f.Name {
		case "manifests.yaml":
			if _, err := s.Set(f.Data); err != nil {
				return nil, err
			}
		case "without":
			for _, line := range lines {
				s.remove(line)
			}
		case "bridges":
			for _, line := range lines {
				chassis, mappings, _ := strings.Cut(line, " ")
				s.bridges[chassis] = world.ParseBridges(mappings)
			}
		case "observed":
			for _, line := range lines {
				if err := s.observe(line); err != nil {
					return nil, err
				}
			}
		case "address":
			s.address = netip.MustParseAddr(lines[0])
		case "from":
			s.question.From = netip.MustParseAddr(lines[0])
		case "probes":
			for _, line := range lines {
				to, failure, _ := strings.Cut(line, " ")
				o := Probe{To: netip.MustParseAddrPort(to), From: netip.MustParseAddr("192.0.2.7")}
				o.Reason, o.Message, _ = strings.Cut(failure, " ")
				s.question.Probes = append(s.question.Probes, o)
			}
		case "leader":
			s.leader = lines[0]
		case "later.yaml":
			s.later = f.Data
		case "unread":
			s.denied = lines
		case "want":
		default:
			return nil, fmt.Errorf("unknown file %q", f.Name)
		}
	}
	return s, nil
}

// lead adds the Lease of the controller.
func (s *scenario) lead() error {
	renewed, holder := s.question.Now, "ovnkube-slb-7d4b9-x2x8z"
	switch s.leader {
	case "none":
		return nil
	case "":
	case "released":
		holder = ""
	default:
		var err error
		if renewed, err = time.Parse(time.RFC3339, s.leader); err != nil {
			return err
		}
	}
	s.Leader = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ovn-kubernetes", Name: objects.LeaderName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(2)),
			RenewTime: new(metav1.NewMicroTime(renewed))}}
	return nil
}

// deny removes what the user must not read.
func (s *scenario) deny() {
	s.Unread = s.denied
	for _, resource := range s.denied {
		switch resource {
		case "nodes":
			s.Nodes = nil
		case "ipaddresspools":
			s.Pools = nil
		case "l2domains":
			s.Domains = nil
		case "endpointslices":
			s.Slices = nil
		case "leases":
			s.Leases = nil
		case "bgppeers":
			s.Peers = nil
		case objects.LeaderLease:
			s.Leader = nil
		case "bgpadvertisements":
			s.Advertisements = nil
		}
	}
}

func (s *scenario) remove(object string) {
	switch object {
	case "IPAddressPool/public":
		s.Pools = nil
	case "L2Domain/lan":
		s.Domains = nil
	case "EndpointSlice/web-1":
		s.Slices = nil
	}
}

func (s *scenario) observe(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "unclaimed":
		s.noClaims = true
	case "unapplied":
		s.notApplied = true
	case "untranslated":
		s.pendingSince = s.question.Now.Add(-world.ProgramWait)
	case "rival":
		s.rivals = append(s.rivals, rest)
	case "unreachable":
		s.observed.Unreachable = rest
	case "conflict":
		address, mac, _ := strings.Cut(rest, " ")
		s.conflicts[netip.MustParseAddr(address)] = mac
	case "taken":
		address, mac, _ := strings.Cut(rest, " ")
		s.taken[netip.MustParseAddr(address)] = mac
	case "refused":
		s.refused = errors.New(rest)
	default:
		return fmt.Errorf("%q is none of unclaimed, unapplied, untranslated, rival, unreachable, conflict, taken and refused",
			word)
	}
	return nil
}

// pass does what the controller does in one pass, with a dataplane that does everything at once.
func (s *scenario) pass() {
	now := s.question.Now
	w := s.Snapshot(now)
	w.Bridges, w.ShardStates = s.bridges, map[world.ShardID]world.ShardState{}
	s.addReports(w)
	w.Applied = s.applied
	for _, d := range place.Compute(w).Domains {
		for _, shard := range d.Shards {
			var state world.ShardState
			for _, g := range shard.Gateways {
				state.Order = append(state.Order, g.Node)
			}
			if !s.noClaims {
				state.Active, state.Settled, state.Rivals = state.Order[0], true, s.rivals
			}
			w.ShardStates[shard.ID] = state
		}
	}
	if s.notApplied { // until the status waits no more
		granted := *w
		granted.Now = w.Now.Add(-world.ProgramWait)
		s.state.Decide(&granted)
	}
	d := s.state.Decide(w)
	for key, plan := range d.Plans {
		s.observed.Programmed[key] = loop.Result{Key: key, Plan: plan, Err: s.refused, Pending: s.pendingSince}
		for _, vip := range plan.VIPs {
			if !s.notApplied {
				s.applied[key] = []netip.Addr{vip.Addr}
			}
		}
	}
	b := report.NewBuilder(d, s.observed)
	for i, o := range s.Domains {
		if out, changed := b.Domains()[o.Name](o, now); changed {
			s.Domains[i] = out
		}
	}
	for i, o := range s.Pools {
		if out, changed := b.Pools()[o.Name](o, now); changed {
			s.Pools[i] = out
		}
	}
	for i, o := range s.Services {
		ours := slices.IndexFunc(w.Services, func(s *world.Service) bool {
			return s.Key.Namespace == o.Namespace && s.Key.Name == o.Name
		})
		if ours < 0 {
			continue
		}
		if status := b.Service(w.Services[ours]); status != nil {
			s.Services[i] = withStatus(o, status)
		}
	}
	verdicts := b.BGPObjects()
	for _, p := range s.Peers {
		set(&p.Status.Conditions, verdicts.Peers[p.Name])
	}
	s.probes = d.Probes
}

// addReports adds the conflicts that guards report in reply to the probe requests of the last pass, and those on
// announced addresses.
func (s *scenario) addReports(w *world.Snapshot) {
	const gateway = "n1"
	w.AnnouncedReports = map[string]map[netip.Addr]world.Conflict{gateway: {}}
	for a, mac := range s.taken {
		w.AnnouncedReports[gateway][a] = world.Conflict{MAC: mac, Node: gateway, Since: s.question.Now.UTC()}
	}
	w.Reports = map[string]map[netip.Addr]world.Conflict{}
	for node, requests := range s.probes {
		for _, r := range requests {
			for _, a := range r.Addresses {
				if mac := s.conflicts[a]; mac != "" {
					w.Reports[node] = map[netip.Addr]world.Conflict{a: {MAC: mac, Node: node, Since: s.question.Now.UTC(),
						Probe: r.ID}}
				}
			}
		}
	}
}

func withStatus(o *corev1.Service, want *status.Service) *corev1.Service {
	out := o.DeepCopy()
	out.Status.LoadBalancer.Ingress = nil
	for _, a := range want.Addrs {
		out.Status.LoadBalancer.Ingress = append(out.Status.LoadBalancer.Ingress,
			corev1.LoadBalancerIngress{IP: a.String()})
	}
	verdicts := status.Verdicts{v1alpha1.ConditionAllocated: want.Allocated}
	if want.Announced != nil {
		verdicts[v1alpha1.ConditionAnnounced] = *want.Announced
	}
	set(&out.Status.Conditions, verdicts)
	return out
}

func set(conditions *[]metav1.Condition, verdicts status.Verdicts) {
	for _, kind := range slices.Sorted(maps.Keys(verdicts)) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: verdicts[kind].Status,
			Reason: verdicts[kind].Reason, Message: verdicts[kind].Message})
	}
}
