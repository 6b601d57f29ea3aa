// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ipam"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// State is the state of a link.
type State string

const (
	// OK means that the link works.
	OK State = "ok"
	// Warning means that the link works, with a weakness.
	Warning State = "warning"
	// Broken means that the link does not work.
	Broken State = "broken"
	// Unknown means that no object shows whether the link works.
	Unknown State = "unknown"
	// Unused means that the path does not use the link, or does not get as far.
	Unused State = "unused"
)

// Names of links, in the order of the path.
const (
	LinkService   = "service"
	LinkPool      = "pool"
	LinkAddress   = "address"
	LinkDomain    = "domain"
	LinkShard     = "shard"
	LinkGateway   = "gateway"
	LinkDataplane = "dataplane"
	LinkClients   = "clients"
	LinkPolicies  = "policies"
	LinkEndpoints = "endpoints"
	LinkEgress    = "egress"
	LinkBGP       = "bgp"
	LinkProbe     = "probe"
)

// Link is one link of the path.
type Link struct {
	// Name is the kind of the link, and Object the object, for example a node.
	Name   string `json:"name"`
	Object string `json:"object,omitempty"`
	State  State  `json:"state"`
	// Reason is one word, as in conditions. It is empty if the link works.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	// Command mends the link, or shows more of the cause. It is empty if none does.
	Command string `json:"command,omitempty"`
}

// Answer values of Result.Reachable.
const (
	Yes   = "yes"
	No    = "no"
	Maybe = "unknown"
)

// Result is the path to a Service.
type Result struct {
	// Service is NAMESPACE/NAME.
	Service   string   `json:"service"`
	Addresses []string `json:"addresses,omitempty"`
	// Reachable is yes, no or unknown.
	Reachable string `json:"reachable"`
	// Families are set if the Service has addresses of both and is reachable over one of them only, as far as is known.
	Families []FamilyResult `json:"families,omitempty"`
	// FirstBroken is the first link that is Broken or, if there is none, the first that is Unknown.
	FirstBroken *Link  `json:"firstBroken,omitempty"`
	Links       []Link `json:"links"`
	// Notes are about the answer itself, for example that statuses may be old, and about what no object decides.
	Notes []string `json:"notes,omitempty"`
}

// FamilyResult is the answer about the addresses of one IP family.
type FamilyResult struct {
	// Family is IPv4 or IPv6.
	Family string `json:"family"`
	// Reachable is yes, no or unknown.
	Reachable string `json:"reachable"`
}

// Question is what to explain.
type Question struct {
	Service world.Key
	// From is the address of a client: the answer is about the Service's addresses of its family. The zero Addr stands
	// for any client, and the answer is about all addresses.
	From netip.Addr
	// Address is the only address of the Service that the question is about. The zero Addr stands for all.
	Address netip.Addr
	Now     time.Time
	// Probes are what the machine of the user observed. Nil means that it did not probe.
	Probes []Probe
	// family is the only family that the question is about; 0 stands for both.
	family world.Family
}

// path is the state of one explanation.
type path struct {
	Question
	objects *objects.Objects
	object  *corev1.Service
	world   *world.Snapshot
	// service is nil if the Service is not ours.
	service    *world.Service
	layout     *place.Layout
	allocation *ipam.Allocation
	bgp        *bgp.Layout
	survey     *bgp.Survey
	// allocated and announced are the conditions of the Service; nil if the controller has not written them.
	allocated, announced *metav1.Condition
	// listed are the Services with an address that another one lists in spec.externalIPs.
	listed map[world.Key]listing
	// layer2 is set if an L2Domain announces at least one address that the question is about.
	layer2 bool
	// byDomain are the addresses that L2Domains announce.
	byDomain []netip.Addr
	// mayLackRows is set if no gateway has claimed a shard, and OVN may be why.
	mayLackRows bool
	links       []Link
	// remarks are Notes about what may be right or wrong.
	remarks []string
}

// Explain answers a question about a Service that exists.
func Explain(o *objects.Objects, q Question) *Result {
	p := clusterPath(o, q)
	p.computeDecisions()
	return explain(p.to(q))
}

func explain(p *path) *Result {
	p.addLinks()
	p.addProbes()
	r := &Result{Service: p.Service.String(), Links: p.links}
	for _, a := range convert.Assigned(p.object) {
		if !p.Address.IsValid() || a == p.Address {
			r.Addresses = append(r.Addresses, a.String())
		}
	}
	if p.service != nil && len(r.Addresses) == 0 && slices.Contains(p.service.HeldExternalIPs, p.Address) {
		r.Addresses = []string{p.Address.String()}
	}
	var first int
	if r.Reachable, first = p.reachability(); first >= 0 {
		r.FirstBroken = &r.Links[first]
	}
	r.Families = p.families()
	r.Notes = p.notes()
	if r.Reachable == No && p.answered() {
		r.Notes = append(r.Notes, "this machine was answered, although a link is broken: other clients, or new connections, "+
			"may not be")
	}
	printable.Clean(r)
	return r
}

// reachability returns whether the links lead to the Service, and the index of the first one that does not; -1 if all
// do.
func (p *path) reachability() (reachable string, first int) {
	first = slices.IndexFunc(p.links, func(l Link) bool { return l.State == Broken })
	if first >= 0 {
		return No, first
	}
	first = slices.IndexFunc(p.links, func(l Link) bool { return l.State == Unknown })
	if first >= 0 && !p.answered() { // What is observed counts, whatever no object shows.
		return Maybe, first
	}
	return Yes, -1
}

// clusterPath returns the path of no Service: what all explanations of a cluster have in common.
func clusterPath(o *objects.Objects, q Question) *path {
	p := &path{Question: q, objects: o, world: o.Snapshot(q.Now)}
	p.layout = place.Compute(p.world)
	p.listed = p.listedByOthers()
	return p
}

// computeDecisions adds the decisions about all Services.
func (p *path) computeDecisions() {
	p.allocation = ipam.Allocate(p.world, p.layout.ConfiguredShardOf)
	p.bgp = bgp.NewLayout(p.world, p.allocation, p.layout.ConfiguredShardOf)
	p.survey = frrk8s.Survey(p.world, p.bgp)
}

// to returns the path to a Service in the same cluster.
func (p *path) to(q Question) *path {
	out := *p
	out.Question = q
	out.object = p.objects.Service(q.Service)
	out.allocated = meta.FindStatusCondition(out.object.Status.Conditions, v1alpha1.ConditionAllocated)
	out.announced = meta.FindStatusCondition(out.object.Status.Conditions, v1alpha1.ConditionAnnounced)
	out.service = p.serviceOf(q.Service)
	return &out
}

// serviceOf returns a Service as decisions see it; nil if it is not ours.
func (p *path) serviceOf(key world.Key) *world.Service {
	at := slices.IndexFunc(p.world.Services, func(s *world.Service) bool { return s.Key == key })
	if at < 0 {
		return nil
	}
	return p.world.Services[at]
}

// addLinks adds the links up to the first one without which the others do not exist.
func (p *path) addLinks() {
	if !p.addService() || !p.addPool() || !p.addAddress() || p.isUnservedExternal() {
		return
	}
	if len(p.asked()) == 0 {
		p.addClients()
		return
	}
	if p.unread("ipaddresspools", "l2domains") {
		p.add(p.asAnnounced(LinkDomain))
		p.addClients()
		p.addPolicies()
		p.addEndpoints()
		return
	}
	for _, a := range p.asked() {
		p.addDomain(a)
	}
	p.addDataplane()
	p.addClients()
	p.addPolicies()
	p.addEndpoints()
	p.addEgress()
	if p.unread("nodes", "endpointslices", "bgppeers", "bgpadvertisements", "bgpnodestatuses", "bfdprofiles",
		"communities") {
		p.addUnreadBGP()
		return
	}
	p.addBGP()
}

// unread reports whether one of the resources could not be read.
func (p *path) unread(resources ...string) bool {
	return slices.ContainsFunc(resources, func(r string) bool { return slices.Contains(p.objects.Unread, r) })
}

// ReasonNotRead is the reason of links and findings that depend on resources that could not be read.
const ReasonNotRead = v1alpha1.ReasonNotRead

// notRead returns a link that depends on resources that could not be read.
func notRead(name, object, message string) Link {
	return Link{Name: name, Object: object, State: Unknown, Reason: ReasonNotRead, Message: message}
}

// aboutOther precedes the message of a condition that does not concern the addresses that the question is about.
const aboutOther = "condition " + v1alpha1.ConditionAnnounced + " is only about another address: "

// asAnnounced returns a link whose objects could not be read: what the condition Announced of the Service reports.
func (p *path) asAnnounced(name string) Link {
	link := Link{Name: name, State: Unknown, Reason: v1alpha1.ReasonProgramming,
		Message: "the controller has not written condition " + v1alpha1.ConditionAnnounced}
	if c := p.announced; c != nil {
		link.State, link.Reason, link.Message = stateOf(c), c.Reason, c.Message
		switch {
		case c.Status == metav1.ConditionTrue:
			link.State, link.Reason = OK, ""
		case !p.concerns(c, p.asked()):
			link.State, link.Message = Unknown, aboutOther+c.Message
		}
	}
	return link
}

// addrs returns the addresses of the Service that we announce.
func (p *path) addrs() []netip.Addr {
	var addrs []netip.Addr
	for _, a := range p.service.Assigned {
		if slices.Contains(p.service.Given, a) { // Other addresses are another controller's.
			addrs = append(addrs, a)
		}
	}
	for _, a := range p.service.HeldExternalIPs {
		if !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

func (p *path) add(l Link) { p.links = append(p.links, l) }

// ok adds a link that works.
func (p *path) ok(name, object, message string) {
	p.add(Link{Name: name, Object: object, State: OK, Message: message})
}

// broken adds a link that does not work.
func (p *path) broken(name, object, reason, message, command string) {
	p.add(Link{Name: name, Object: object, State: Broken, Reason: reason, Message: message, Command: command})
}

// verdict returns the condition Announced if its reason is one of those, it is not True, and it concerns an address
// that the question is about.
func (p *path) verdict(reasons ...string) *metav1.Condition {
	if p.announced == nil || p.announced.Status == metav1.ConditionTrue ||
		!slices.Contains(reasons, p.announced.Reason) || !p.concerns(p.announced, p.asked()) {
		return nil
	}
	return p.announced
}

// stateOf returns the state of what a condition that is not True is about.
func stateOf(c *metav1.Condition) State {
	switch {
	case c.Reason == v1alpha1.ReasonUnsteady:
		return Warning // announced at present
	case c.Status == metav1.ConditionUnknown:
		return Unknown
	case c.Reason == v1alpha1.ReasonSessionsDown, c.Reason == v1alpha1.ReasonExhausted:
		return Warning // others are established, and Services that have addresses keep them
	}
	return Broken
}

// remark adds a Note, once.
func (p *path) remark(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.remarks, text) {
		p.remarks = append(p.remarks, text)
	}
}

// notes are the remarks, and about how far the answer can be trusted.
func (p *path) notes() []string {
	notes := p.remarks
	if c := p.announced; c != nil && c.Reason == v1alpha1.ReasonUnsteady && !p.layer2 {
		notes = append(notes, "condition "+v1alpha1.ConditionAnnounced+": "+c.Message)
	}
	if silent := ControllerSilent(p.objects, p.Now); silent != "" {
		notes = append(notes, LeaseName(p.objects.Leader)+": "+silent)
	}
	notes = append(notes, p.noLeader()...)
	if len(p.objects.Unread) > 0 {
		notes = append(notes, "not read, because the API server does not allow it: "+joined(p.objects.Unread))
	}
	return notes
}

// clockSkew is how much the clocks of the user and of the cluster may differ without a report about the controller,
// whose Lease may expire after two seconds.
const clockSkew = 15 * time.Second

// ControllerSilent returns since when no controller has renewed its Lease; empty if one has, or if there is no Lease.
func ControllerSilent(o *objects.Objects, now time.Time) string {
	switch l := o.Leader; {
	case l == nil:
		return ""
	case l.Spec.RenewTime == nil:
		return "no controller has ever renewed it: statuses may be out of date"
	case l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "":
		return "the controller that held it has stopped, and no other one holds it: statuses may be out of date"
	case objects.Expired(l, now.Add(-clockSkew)):
		return "no controller has renewed it since " + l.Spec.RenewTime.UTC().Format(time.RFC3339) +
			": statuses may be out of date"
	}
	return ""
}

// LeaseName names a Lease in messages.
func LeaseName(l *coordinationv1.Lease) string { return "Lease " + l.Namespace + "/" + l.Name }

// noLeader returns a note if there is no Lease of a controller.
func (p *path) noLeader() []string {
	if p.objects.Leader != nil || p.unread(objects.LeaderLease) {
		return nil
	}
	return []string{"there is no Lease " + objects.LeaderName + " in the namespaces " +
		strings.Join(objects.ControllerNamespaces(), " and ") +
		", so it is not known whether a controller runs (it has none without " +
		"--leader-elect)"}
}
