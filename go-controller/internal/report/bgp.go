// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/place"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// maxNamed is the maximum number of nodes or peers that a message names. Beyond it, the message does not contain a
// count: otherwise each node restart would rewrite the statuses of all Services.
const maxNamed = 5

// advertisementState is the BGP state of an address. The zero value means that no advertisement selects it. If reason
// is set, no node advertises the address.
type advertisementState struct{ reason, text string }

// advertisementsOf returns the BGP state of each placement of a Service, or nil if no advertisement selects an address.
func (v *Builder) advertisementsOf(s *world.Service) []advertisementState {
	placements := v.Placements.Services[s.Key]
	var list []advertisementState
	for i, placement := range placements {
		if !v.survey.Takes(s, placement.Addr) {
			continue
		}
		if list == nil {
			list = make([]advertisementState, len(placements))
		}
		r := v.survey.Of(s, placement.Addr)
		list[i] = v.advertisementState(r)
		if nodes := v.survey.Overdue(s, placement.Addr); len(nodes) > 0 {
			list[i].text += fmt.Sprintf("; not withdrawn by %s, which should not advertise it", named("node", nodes))
		}
		if why := v.survey.NotSent(s, placement.Addr); why != "" {
			list[i].text += "; " + why
		}
		if r != nil && r.ByNode && len(r.Nodes) > 0 && len(s.SourceRanges) > 0 {
			list[i].text += "; for traffic that enters through a node, spec.loadBalancerSourceRanges are up to OVN-Kubernetes"
		}
	}
	return list
}

func (v *Builder) advertisementState(r *bgp.Advertisers) advertisementState {
	if r == nil {
		return advertisementState{v1alpha1.ReasonNoEndpoints,
			"the Service has no usable endpoint, so no node is to advertise the address over BGP"}
	}
	t, worded := v.advertisementStates[r]
	if !worded {
		t = advertisersText(r)
		v.advertisementStates[r] = t
	}
	return t
}

func advertisersText(r *bgp.Advertisers) advertisementState {
	switch {
	case r.Off != "":
		return advertisementState{v1alpha1.ReasonDisabledByMode, r.Off}
	case r.GatewayUnknown:
		return advertisementState{v1alpha1.ReasonNoGateway,
			"not advertised over BGP until its shard has an external address (nextHop: Gateway)"}
	case r.IsNextHop:
		return advertisementState{v1alpha1.ReasonNoNodes, "not advertised over BGP: " + bgp.IsNextHop}
	case len(r.Nodes) > 0:
		return advertisementState{text: fmt.Sprintf("advertised over BGP by %s to %s", named("node", r.Nodes),
			named("BGPPeer", r.Peers))}
	case r.Invalid != nil:
		return advertisementState{v1alpha1.ReasonNoNodes, fmt.Sprintf("no node can advertise the address over BGP: %s (%s)",
			r.Invalid, r.Invalid.Finding.Reason)}
	case len(r.NotAdvertising) == 0:
		return advertisementState{v1alpha1.ReasonNoNodes,
			"no node can advertise the address over BGP: check the nodeSelectors of BGPPeers and BGPAdvertisements, peers, " +
				"address families, addresses of nodes, drained nodes and (externalTrafficPolicy: Local) endpoints"}
	}
	if r.FRRReason != "" && !r.Unknown {
		text := fmt.Sprintf("FRR does not advertise the address: %s; %s", named("node", r.NotAdvertising), r.Problem)
		return advertisementState{r.FRRReason, text}
	}
	reason, known, does := v1alpha1.ReasonNoSession, "be established", "is established"
	if f := r.NotNegotiated; f != 0 {
		reason, known, does = v1alpha1.ReasonNoNodes, "carry "+f.String(), "carries "+f.String()
	}
	if r.Unread {
		text := fmt.Sprintf("no node is known to advertise the address over BGP: %s; %s", named("node", r.NotAdvertising),
			r.Problem)
		return advertisementState{v1alpha1.ReasonNotRead, text}
	}
	if r.Unknown {
		text := fmt.Sprintf("no BGP session is known to %s: %s; %s", known, named("node", r.NotAdvertising), r.Problem)
		return advertisementState{v1alpha1.ReasonNodeSilent, text}
	}
	text := fmt.Sprintf("no BGP session %s, so the address is not advertised: %s", does, named("node", r.NotAdvertising))
	if r.Problem != "" {
		text += "; " + r.Problem
	}
	return advertisementState{reason, text}
}

// notSelected returns that no advertisement advertises the addresses of a pool, empty if one selects them.
func (v *Builder) notSelected(pool string) string {
	ad := v.BGP.IneffectiveOn(pool)
	switch {
	case v.BGP.SelectsPool(pool):
		return ""
	case ad != nil:
		return ", and " + ad.Which()
	}
	return ", and no BGPAdvertisement selects it"
}

// named formats up to maxNamed names, prefixed with the kind that they name.
func named(what string, names []string) string {
	switch {
	case len(names) > maxNamed:
		return fmt.Sprintf("more than %d %ss", maxNamed, what)
	case len(names) == 1:
		return what + " " + names[0]
	}
	return what + "s " + strings.Join(names, ", ")
}

// onlyBGP reports whether an advertisement selects an address that no L2Domain currently serves.
func onlyBGP(placement place.Placement, t advertisementState) bool {
	return placement.OutsideLayer2() && t.text != ""
}

// advertisementTexts describes the BGP state of the addresses. Addresses with the same state share one text.
func advertisementTexts(placements []place.Placement, states []advertisementState) []string {
	var different []advertisementState
	addrs := map[advertisementState][]string{}
	for i, t := range states {
		if t.text == "" {
			continue
		}
		if addrs[t] == nil {
			different = append(different, t)
		}
		addrs[t] = append(addrs[t], placements[i].Addr.String())
	}
	texts := make([]string, 0, len(different))
	for _, t := range different {
		noun := "address"
		if len(addrs[t]) > 1 {
			noun = "addresses"
		}
		texts = append(texts, fmt.Sprintf("%s %s: %s", noun, strings.Join(addrs[t], ", "), t.text))
	}
	return texts
}

// BGPObjects returns the verdicts on the BGP objects.
func (v *Builder) BGPObjects() status.BGP {
	out := status.BGP{
		Peers: map[string]status.Verdicts{}, Advertisements: map[string]status.Verdicts{},
		Profiles: map[string]status.Verdicts{}, Communities: map[string]status.Verdicts{},
		Silent: map[string]status.Verdicts{},
	}
	for node, sessions := range v.World.Sessions {
		for _, s := range sessions {
			if s.Unknown && !s.ByFRR {
				out.Silent[node] = status.Verdicts{v1alpha1.ConditionReady: {
					Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodeSilent, Message: s.Problem,
				}}
				break
			}
		}
	}
	accepted := func(list []world.Finding) status.Verdicts {
		return status.Verdicts{v1alpha1.ConditionAccepted: status.OfFindings(list)}
	}
	twins, rivals, keepers := v.BGP.Duplicates(), frrk8s.Rivals(v.World), v.survey.SessionNodes()
	for _, p := range v.World.Peers {
		findings := p.Findings
		if f, ok := twins[p.Name]; ok {
			findings = append(slices.Clip(findings), f)
		}
		if f, ok := rivals[p.Name]; ok {
			findings = append(slices.Clip(findings), f)
		}
		findings = append(slices.Clip(findings), v.FRR.Findings(p.Name)...)
		out.Peers[p.Name] = accepted(findings)
		ready := v.peerReady(p.Name, world.Fatal(findings), keepers[p.Name])
		if p.FRRK8s {
			ready = v.frrWritten(p, ready)
		}
		out.Peers[p.Name][v1alpha1.ConditionReady] = v.withdrawn(p, ready)
	}
	clashes := v.BGP.Clashes()
	for name, f := range frrk8s.Inexpressible(v.World) {
		clashes[name] = append(clashes[name], f)
	}
	for _, a := range v.World.Advertisements {
		out.Advertisements[a.Name] = accepted(append(slices.Clip(a.Findings), clashes[a.Name]...))
	}
	for _, name := range v.World.Profiles {
		out.Profiles[name] = accepted(nil)
	}
	for name, findings := range v.World.Communities {
		out.Communities[name] = accepted(findings)
	}
	return out
}

// SessionCounts are the numbers of sessions that nodes must have with a BGPPeer, by state.
type SessionCounts struct{ Established, Down, Unknown int }

// SessionCounts returns the counts of the BGPPeers with which nodes must have sessions, by name.
func (v *Builder) SessionCounts() map[string]SessionCounts {
	out := map[string]SessionCounts{}
	for peer, nodes := range v.survey.SessionNodes() {
		var counts SessionCounts
		for _, n := range nodes {
			switch s := v.World.Sessions[n][peer]; {
			case s.Established:
				counts.Established++
			case s.Unknown:
				counts.Unknown++
			default:
				counts.Down++
			}
		}
		out[peer] = counts
	}
	return out
}

// peerReady reports whether every node that must keep a session with a peer has one.
func (v *Builder) peerReady(peer string, useless bool, keepers []string) status.Verdict {
	not := func(reason, message string) status.Verdict {
		return status.Verdict{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	var lack, silent, noBFD []string
	var why, whySilent, whyBFD string
	var cause bgp.Problem
	for _, n := range keepers {
		s, reports := v.World.Sessions[n][peer]
		if s.BFDProblem != "" && !s.Unknown {
			noBFD, whyBFD = append(noBFD, n), cmp.Or(whyBFD, problemOf(n, s.BFDProblem))
		}
		problem := bgp.ProblemOf(s, v.nodes[n].AnyFault().Message)
		switch {
		case s.Established:
			continue
		case s.Unknown:
			silent = append(silent, n)
			whySilent = cmp.Or(whySilent, problemOf(n, s.Problem))
			continue
		case problem.MoreSpecific(cause):
			why, cause = problemOf(n, problem.Text), problem
		case s.Problem == "" && !reports:
			why = cmp.Or(why, "; "+bgp.NoReport(n))
		}
		lack = append(lack, n)
	}
	firstFew := func(names []string) string { return strings.Join(names[:min(len(names), maxNamed)], ", ") }
	var unknown, lacking, withoutBFD string
	if len(noBFD) > 0 {
		withoutBFD = fmt.Sprintf("BFD does not work on %d of %s: %s%s", len(noBFD),
			world.Count(len(keepers), "node"), firstFew(noBFD), whyBFD)
	}
	if len(silent) > 0 {
		unknown = fmt.Sprintf("the state of the session on %d of %s is unknown: %s%s",
			len(silent), world.Count(len(keepers), "node"), firstFew(silent), whySilent)
	}
	if len(lack) > 0 {
		lacking = fmt.Sprintf("no session on %d of %s: %s%s", len(lack),
			world.Count(len(keepers), "node"), firstFew(lack), why)
	}
	switch {
	case v.BGP.Off() != "":
		return not(v1alpha1.ReasonDisabledByMode, v.BGP.Off())
	case useless:
		return not(v1alpha1.ReasonInvalid, "the BGPPeer is invalid, so there is no session; see "+v1alpha1.ConditionAccepted)
	case len(keepers) == 0:
		return not(v1alpha1.ReasonNoNodes, "no node has the session: all matching nodes are draining")
	case len(lack) == len(keepers):
		return not(v1alpha1.ReasonNoSession, "no established session on "+world.Count(len(keepers), "node")+why)
	case len(silent) > 0 && (len(lack) == 0 || len(lack)+len(silent) == len(keepers)):
		return status.Verdict{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodeSilent, Message: sentences(unknown, lacking),
		}
	case len(lack) > 0:
		return not(v1alpha1.ReasonSessionsDown, sentences(lacking, unknown, withoutBFD))
	}
	return status.Verdict{
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: sentences("established session on "+world.Count(len(keepers), "node"), withoutBFD),
	}
}

// problemOf returns a message suffix with the session problem that a node reports, or "" if it reports none.
func problemOf(node, problem string) string {
	if problem == "" {
		return ""
	}
	return "; node " + node + ": " + problem
}

// sentences joins the nonempty parts of a message.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}
