// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Report is the report of the guard of a node.
type Report struct {
	// Faults are the faults by physical network, or world.EveryNetwork.
	Faults map[string]world.Fault
	// Conflicts are the conflicts on the addresses that the guard probed.
	Conflicts map[netip.Addr]ConflictReport
	// AnnouncedConflicts are the conflicts on addresses that the node announces.
	AnnouncedConflicts map[netip.Addr]ConflictReport
	// Probed are the IDs of the probe requests that the guard has completed.
	Probed []string
	// Localnets are OVN's ports on the node's bridges for L2Domains, by the names of their localnet ports; nil if the
	// guard does not report them.
	Localnets map[string]Localnet
	// Tunnels is what the guard reports of OVN's tunnels; nil if it does not report them.
	Tunnels *world.Tunnels
	// Unobserved means that the guard has withdrawn both: it can't read Open vSwitch's database.
	Unobserved bool
	// Agent is the report of the agent of an OpenShift SDN node; nil if the report is from a guard.
	Agent *Agent
	// Zone is the report of the agent that programs the node's zone; nil without one.
	Zone *world.ZoneAgent
	// guarded means that a guard wrote a part of the report.
	guarded bool
}

// Localnet is OVN's port on a bridge for an L2Domain.
type Localnet struct {
	Bridge string `json:"bridge"`
	// Stale are the addresses for which the bridge's flows keep requests away from the port, sorted.
	Stale []netip.Addr `json:"stale,omitempty"`
}

// Equal reports whether l and o are equal.
func (l Localnet) Equal(o Localnet) bool {
	return l.Bridge == o.Bridge && slices.Equal(l.Stale, o.Stale)
}

// Agent is the content of v1alpha1.AnnotationAgent: the address at which an agent serves health checks, and the node's
// own addresses: those with a subnet by interface, which may attach the node to a segment, and Singles, the others.
type Agent struct {
	Health     netip.AddrPort            `json:"health"`
	Interfaces map[string][]netip.Prefix `json:"interfaces"`
	Singles    []netip.Addr              `json:"singles,omitempty"`
}

// Equal reports whether a and o are equal; either may be nil.
func (a *Agent) Equal(o *Agent) bool {
	if a == nil || o == nil {
		return a == o
	}
	return a.Health == o.Health && maps.EqualFunc(a.Interfaces, o.Interfaces, slices.Equal[[]netip.Prefix]) &&
		slices.Equal(a.Singles, o.Singles)
}

// ConflictReport is the report of a guard that a host outside the cluster answers for an address.
type ConflictReport struct {
	MAC   string    `json:"mac"`
	Since time.Time `json:"since"`
	// Probe is the ID of the probe request that this reports on. The conflict is ignored unless this is the ID of the
	// current request. It is empty for an address that is announced.
	Probe string `json:"probe,omitempty"`
}

// MaxAnnouncedConflicts limits the conflicts on announced addresses that count of one node. With all of them the
// annotation has 22 KiB, of the 256 KiB that all annotations of a Lease may have.
const MaxAnnouncedConflicts = 200

// maxProbed is how many completed probe requests of a report count. More than the controller has asked for at a time
// are in no report of a guard (internal/decide/probing.go).
const maxProbed = 1000

// defaultReportTime is how long a report without a duration is valid.
const defaultReportTime = 40 * time.Second

// maxReportTime is the longest time that counts, that of the report of a node that is no gateway: one that is taken
// over must not seem to report long after it is gone.
const maxReportTime = 15 * time.Minute

// ReadReport converts a report. Invalid parts are ignored: they must not take a gateway out of service. Texts are
// limited to 256 bytes (Bounded).
func ReadReport(l *coordinationv1.Lease) Report {
	var r Report
	r.Faults = readFaults(l.Annotations[v1alpha1.AnnotationFaults])
	r.Conflicts = readConflicts(l.Annotations[v1alpha1.AnnotationConflicts])
	r.AnnouncedConflicts = readConflicts(l.Annotations[v1alpha1.AnnotationAnnouncedConflicts])
	if n := len(r.AnnouncedConflicts); n > MaxAnnouncedConflicts {
		for _, a := range slices.SortedFunc(maps.Keys(r.AnnouncedConflicts), netip.Addr.Compare)[MaxAnnouncedConflicts:] {
			delete(r.AnnouncedConflicts, a)
		}
	}
	if json.Unmarshal([]byte(l.Annotations[v1alpha1.AnnotationProbed]), &r.Probed) != nil {
		r.Probed = nil
	}
	r.Probed = r.Probed[:min(len(r.Probed), maxProbed)]
	if json.Unmarshal([]byte(l.Annotations[v1alpha1.AnnotationLocalnets]), &r.Localnets) != nil {
		r.Localnets = nil
	}
	for name, is := range r.Localnets {
		slices.SortFunc(is.Stale, netip.Addr.Compare)
		is.Bridge = Bounded(is.Bridge)
		r.Localnets[name] = is
	}
	r.Tunnels = readTunnels(l.Annotations[v1alpha1.AnnotationTunnels])
	r.Unobserved = l.Annotations[v1alpha1.AnnotationLocalnets] == "null" && r.Tunnels == nil
	r.Zone = readZone(l.Annotations[v1alpha1.AnnotationZone])
	_, faults := l.Annotations[v1alpha1.AnnotationFaults]
	r.guarded = faults || r.Zone == nil
	var agent Agent
	if json.Unmarshal([]byte(l.Annotations[v1alpha1.AnnotationAgent]), &agent) == nil && agent.Health.IsValid() &&
		agent.Health.Addr().Zone() == "" {
		// The controller writes the names into annotations of nodes.
		maps.DeleteFunc(agent.Interfaces, func(name string, _ []netip.Prefix) bool { return !sdn.IsInterface(name) })
		agent.Singles = slices.DeleteFunc(agent.Singles, func(a netip.Addr) bool { return !a.IsValid() || a.Zone() != "" })
		r.Agent = &agent
	}
	return r
}

// readConflicts reads conflicts by address, those with a MAC address: it becomes part of conditions and Events.
func readConflicts(text string) map[netip.Addr]ConflictReport {
	var all map[netip.Addr]ConflictReport
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	// The zone of an address can be any text, and no address of a Service has one.
	maps.DeleteFunc(all, func(addr netip.Addr, _ ConflictReport) bool { return addr.Zone() != "" })
	for addr, conflict := range all {
		if conflict.MAC = parseMAC(conflict.MAC); conflict.MAC == "" {
			delete(all, addr)
			continue
		}
		all[addr] = conflict
	}
	return all
}

// ReportTime returns how long a report is valid after it was renewed.
func ReportTime(l *coordinationv1.Lease) time.Duration {
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return min(time.Duration(*s)*time.Second, maxReportTime)
	}
	return defaultReportTime
}

// ProbeRequests returns the probe requests for a guard; nil if there are none or they are invalid. Those that would
// exceed world.MaxProbesPerGuard addresses are ignored, because the replies must fit into the same Lease.
func ProbeRequests(l *coordinationv1.Lease) []world.ProbeRequest {
	var list []world.ProbeRequest
	if json.Unmarshal([]byte(l.Annotations[v1alpha1.AnnotationAddressProbes]), &list) != nil {
		return nil
	}
	for i := range list {
		list[i].Addresses = slices.DeleteFunc(list[i].Addresses, func(a netip.Addr) bool { return !a.IsValid() })
	}
	n := 0
	return slices.DeleteFunc(list, func(q world.ProbeRequest) bool {
		if n+len(q.Addresses) > world.MaxProbesPerGuard {
			return true
		}
		n += len(q.Addresses)
		return false
	})
}

// WithReport returns a copy of a node with the report of its guard or agent.
func WithReport(n *world.Node, r Report) *world.Node {
	out := *n
	out.Guarded = r.Agent == nil && r.guarded
	out.Agent = r.Zone
	out.Tunnels, out.Unobserved = r.Tunnels, r.Unobserved
	if r.Agent != nil && n.Kernel != nil {
		kernel := *n.Kernel
		kernel.Agent, kernel.Interfaces = r.Agent.Health, r.Agent.Interfaces
		out.Kernel = &kernel
		out.Links, out.Addrs = slices.Clip(out.Links), slices.Concat(out.Addrs, r.Agent.Singles)
		for _, addrs := range r.Agent.Interfaces {
			for _, p := range addrs {
				out.Links, out.Addrs = append(out.Links, p), append(out.Addrs, p.Addr())
			}
		}
		slices.SortFunc(out.Links, netip.Prefix.Compare)
		slices.SortFunc(out.Addrs, netip.Addr.Compare)
		out.Links, out.Addrs = slices.Compact(out.Links), slices.Compact(out.Addrs)
	}
	if len(r.Faults) > 0 {
		out.Faults = r.Faults
	}
	if r.Localnets != nil {
		out.Localnets = make(map[string]world.Localnet, len(r.Localnets))
		for name, is := range r.Localnets {
			out.Localnets[name] = world.Localnet(is)
		}
	}
	return &out
}
