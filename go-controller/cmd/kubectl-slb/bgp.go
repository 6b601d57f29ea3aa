// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// bgpOptions are the options of command bgp.
type bgpOptions struct {
	connection
	output
}

// Validate returns the first problem with the options, with its flag and value.
func (o *bgpOptions) Validate() error { return o.validate() }

func bgpCommand() *cli.Command {
	var o bgpOptions
	return &cli.Command{
		Name:  "bgp",
		Usage: "show the BGP sessions and routes of all nodes",
		Description: `Shows the sessions that nodes report (BGPNodeStatus), and those of FRR as frr-k8s reports them (FRR), with the
number of prefixes that they advertise, and the routes: which nodes advertise each address, to which peers. Nodes report
the numbers (IPv4, IPv6) up to 30 seconds late, also those of a new session; the state of sessions they report at once.

Examples:
  kubectl slb bgp -o wide`,
		Flags: append(o.clusterFlags(), o.output.flags(formatJSON, formatYAML, formatWide)...),
		Action: func(c *cli.Context) error {
			if err := cmp.Or(o.Validate(), noArguments(c)); err != nil {
				return err
			}
			clients, err := o.connect(c.Context)
			if err != nil {
				return err
			}
			cluster, err := clients.load(c.Context, nil)
			if err == nil {
				err = requireRead(cluster, "bgpnodestatuses")
			}
			if err != nil {
				return err
			}
			now := time.Now()
			report := bgpReport{Sessions: sessions(cluster, now), peers: len(cluster.Peers),
				daemons: len(cluster.NodeStatuses), invalid: invalidPeers(cluster, now),
				ineffective: ineffective(cluster, now)}
			if missing := requireRead(cluster, decisive()...); missing != nil {
				fmt.Fprintf(c.App.ErrWriter, "note: routes are not known: %v\n", missing)
			} else {
				report.Routes = explain.Routes(cluster, now)
			}
			if done, err := o.printAs(c.App.Writer, report); done || err != nil {
				return err
			}
			printable.Clean(&report)
			report.print(c.App.Writer, now, o.format == formatWide, columns())
			return nil
		},
	}
}

// bgpReport is the output of command bgp.
type bgpReport struct {
	Sessions []nodeSession `json:"sessions"`
	// Routes is nil if they are not known.
	Routes []explain.Route `json:"routes"`
	// peers is the number of BGPPeers, and daemons that of nodes on which a BGP daemon has reported.
	peers, daemons int
	// invalid has a text for each BGPPeer that has no session because it is invalid.
	invalid []string
	// ineffective has a text for each BGPAdvertisement that has no effect.
	ineffective []string
}

// nodeSession is a session and its node.
type nodeSession struct {
	Node     string `json:"node"`
	RouterID string `json:"routerID,omitempty"`
	// Unknown is why the state of the session is not known; it is what the node reported last.
	Unknown string `json:"unknown,omitempty"`
	// Fault is what the guard or agent of the node reports, which explains better than LastError that there is no session.
	Fault string `json:"fault,omitempty"`
	// Unread is why the node may advertise other addresses than it is to.
	Unread string `json:"unread,omitempty"`
	// Draining means that the node is drained: it has withdrawn its routes and closes its sessions, or will.
	Draining bool `json:"draining,omitempty"`
	// Stopped means that the BGP daemon of the node was stopped. Sessions that were Established have ended with it.
	Stopped bool `json:"stopped,omitempty"`
	// Undo is what to do about an edit with which another node gets no session, if this one has the settings of before.
	Undo string `json:"undo,omitempty"`
	// Reported is when the node showed last that the report is current; nil if that is not known.
	Reported *metav1.Time `json:"reported,omitempty"`
	// Backend is FRRK8s if FRR has the session, otherwise empty.
	Backend v1alpha1.Backend `json:"backend,omitempty"`
	v1alpha1.BGPSession
}

// problem returns what prevents BFD, and the last error of a session unless it is over: the session was established
// after it, and the error is not that it lacks a family. An Idle session that ended without an error, as that of a node
// that drains, still has the one of an earlier outage.
func (s *nodeSession) problem() string {
	switch {
	case s.Unknown != "":
		return s.Unknown
	case s.Stopped && s.State == v1alpha1.BGPEstablished:
		return "the BGP daemon was stopped: a router with graceful restart keeps its routes for up to " +
			world.Count(int(world.GracefulRestartTime/time.Minute), "minute")
	}
	before := s.State == v1alpha1.BGPIdle && s.Since != nil && s.LastErrorTime != nil &&
		s.LastErrorTime.Add(time.Second).Before(s.Since.Time) // both are in seconds
	lacks := s.LastErrorReason == v1alpha1.BGPErrorNotNegotiated
	var problems []string
	if s.State != v1alpha1.BGPEstablished && s.Fault != "" && s.Backend == "" {
		problems = append(problems, s.Fault)
	} else if (s.State != v1alpha1.BGPEstablished || lacks) && !before && s.LastError != "" {
		problems = append(problems, s.LastError)
	}
	if s.Outdated {
		problems = append(problems, "the session has the settings of before the last edit of the BGPPeer or of "+
			"its Secret: nodes reopen their sessions one after the other")
		if s.Undo != "" {
			problems = append(problems, s.Undo)
		}
	}
	if s.Unread != "" {
		problems = append(problems, s.Unread)
	}
	if s.BFDError != "" {
		problems = append(problems, "BFD: "+s.BFDError)
	}
	return strings.Join(problems, "; ")
}

// sessions returns the sessions of all nodes, by node and peer.
func sessions(cluster *objects.Objects, now time.Time) []nodeSession {
	list, unknown, faults := []nodeSession{}, explain.UnknownSessions(cluster, now), explain.Faults(cluster, now)
	undo := explain.Undo(cluster, now)
	for _, n := range cluster.NodeStatuses {
		of := nodeSession{Node: n.Name, RouterID: n.Status.RouterID, Stopped: n.Status.StopTime != nil,
			Reported: cluster.LastReport(n.Name), Unknown: unknown[n.Name], Fault: faults[n.Name]}
		if c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			of.Draining = c.Reason == v1alpha1.ReasonDraining
			if c.Reason == v1alpha1.ReasonNotRead {
				of.Unread = c.Message
			}
			if c.Status == metav1.ConditionUnknown {
				of.Unknown = c.Message
			}
		}
		for _, of.BGPSession = range n.Status.Sessions {
			of.Undo = ""
			if of.Outdated {
				of.Undo = undo[of.Peer]
			}
			list = append(list, of)
		}
	}
	if cluster.UsesFRR() {
		list = append(list, frrSessions(cluster.Snapshot(now))...)
	}
	slices.SortFunc(list, func(a, b nodeSession) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Peer, b.Peer))
	})
	return list
}

// invalidPeers returns the first fatal finding of each invalid BGPPeer.
func invalidPeers(cluster *objects.Objects, now time.Time) []string {
	var list []string
	for _, p := range cluster.Snapshot(now).Peers {
		list = appendFatal(list, "BGPPeer "+p.Name, p.Findings)
	}
	printable.Clean(&list)
	return list
}

// ineffective returns the first fatal finding of each BGPAdvertisement that has one.
func ineffective(cluster *objects.Objects, now time.Time) []string {
	var list []string
	for _, a := range cluster.Snapshot(now).Advertisements {
		list = appendFatal(list, "BGPAdvertisement "+a.Name, a.Findings)
	}
	printable.Clean(&list)
	return list
}

// appendFatal appends the first fatal finding of an object.
func appendFatal(list []string, object string, findings []world.Finding) []string {
	at := slices.IndexFunc(findings, func(f world.Finding) bool { return f.Fatal })
	if at < 0 {
		return list
	}
	return append(list, fmt.Sprintf("%s: %s: %s", object, findings[at].Reason, findings[at].Message))
}

// frrSessions returns the sessions of FRR as frr-k8s reports them. Each prefix that FRR runs counts as advertised if
// the session is established.
func frrSessions(w *world.Snapshot) []nodeSession {
	var list []nodeSession
	for _, p := range w.Peers {
		for _, node := range p.Nodes {
			is, known := w.Sessions[node][p.Name]
			if !p.FRRK8s || !known {
				continue
			}
			s := nodeSession{Node: node, Backend: v1alpha1.BackendFRRK8s, BGPSession: v1alpha1.BGPSession{Peer: p.Name,
				PeerAddress: p.NeighborID(), State: v1alpha1.BGPIdle, LastError: is.Problem}}
			if is.Unknown {
				s.Unknown = is.Problem
			}
			if w.FRR.Available() {
				if state := w.FRR.Sessions[node][frrapi.SessionID(p.NeighborID())]; state != "" {
					s.State = v1alpha1.BGPSessionState(state)
				}
			}
			if is.Established {
				for _, prefix := range w.FRR.Running(node, p) {
					if prefix.Addr().Is4() {
						s.AdvertisedIPv4++
					} else {
						s.AdvertisedIPv6++
					}
				}
			}
			list = append(list, s)
		}
	}
	return list
}

// print prints the report. Texts are wrapped at a width; 0 wraps none.
func (r *bgpReport) print(w io.Writer, now time.Time, wide bool, width int) {
	switch {
	case r.peers == 0 && len(r.Sessions) == 0:
		fmt.Fprintln(w, "There is no BGPPeer (docs/tasks/bgp.md).")
		return
	case len(r.Sessions) == 0 && len(r.invalid) > 0 && r.daemons > 0:
		fmt.Fprintln(w, "No node reports a BGP session. kubectl slb status shows what to do.")
		printTexts(w, r.invalid, width)
		return
	case len(r.Sessions) == 0 && r.daemons > 0:
		fmt.Fprintf(w, "No node reports a BGP session, although BGP daemons run on %s: does a BGPPeer select one of them "+
			"(spec.nodeSelectors)? kubectl slb status shows the conditions of BGPPeers.\n", world.Count(r.daemons, "node"))
		return
	case len(r.Sessions) == 0:
		fmt.Fprintln(w, "No node reports a BGP session, as with a flavour without BGP (docs/install.md#flavours).")
		return
	}
	t := table(w)
	head := "NODE\tPEER\tADDRESS\tSTATE\tSINCE\tBFD\tIPv4\tIPv6\tREPORTED"
	if wide {
		head += "\tASN\tLOCAL ADDRESS\tROUTER ID"
	}
	fmt.Fprintln(t, head)
	for i := range r.Sessions {
		s := &r.Sessions[i]
		state := string(s.State)
		switch {
		case s.Unknown != "" && s.Backend == v1alpha1.BackendFRRK8s && s.State == v1alpha1.BGPIdle:
			state = "unknown" // Idle stands for no report, too
		case s.Unknown != "":
			state = "unknown, was " + state
		case s.Stopped && s.State == v1alpha1.BGPEstablished:
			state = "stopped, was " + state
		case s.Draining:
			state += ", draining"
		}
		if s.Backend == v1alpha1.BackendFRRK8s {
			state += " (FRR)"
		}
		bfd, asn := cmp.Or(string(s.BFD), "-"), "-"
		if s.Unknown != "" {
			bfd = "-" // what it was says nothing about now
		}
		if s.PeerASN != 0 {
			asn = strconv.FormatInt(s.PeerASN, 10)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s", s.Node, s.Peer, s.PeerAddress, state, age(s.Since, now),
			bfd, s.AdvertisedIPv4, s.AdvertisedIPv6, age(s.Reported, now))
		if wide {
			fmt.Fprintf(t, "\t%s\t%s\t%s", asn, cmp.Or(s.LocalAddress, "-"), cmp.Or(s.RouterID, "-"))
		}
		fmt.Fprintln(t)
	}
	flush(t, w)
	r.printProblems(w, wide, width)
	switch {
	case r.Routes == nil:
		return
	case len(r.Routes) == 0 && len(r.ineffective) > 0:
		fmt.Fprintln(w, "No BGPAdvertisement with an effect selects an address of a Service: kubectl slb status shows "+
			"what to do.")
		printTexts(w, r.ineffective, width)
		return
	case len(r.Routes) == 0:
		fmt.Fprintln(w, "No BGPAdvertisement selects an address of a Service: kubectl slb status shows their conditions.")
		return
	}
	r.printRoutes(w, wide)
}

// printProblems prints what is wrong with sessions, once for all nodes with the same problem.
func (r *bgpReport) printProblems(w io.Writer, wide bool, width int) {
	type about struct{ peer, problem string }
	var all []about
	nodes := map[about][]string{}
	for i := range r.Sessions {
		s := &r.Sessions[i]
		a := about{s.Peer, s.problem()}
		if a.problem == "" {
			continue
		}
		if nodes[a] == nil {
			all = append(all, a)
		}
		nodes[a] = append(nodes[a], s.Node)
	}
	for _, a := range all {
		text := fmt.Sprintf("%s with %s: %s", few(nodes[a], wide), a.peer, a.problem)
		fmt.Fprintf(w, "  %s\n", explain.Wrap(text, 2, width))
	}
	printTexts(w, r.invalid, width)
	if len(all)+len(r.invalid) > 0 {
		fmt.Fprintln(w)
	}
}

// printTexts prints texts about objects, each on lines of its own.
func printTexts(w io.Writer, texts []string, width int) {
	for _, text := range texts {
		fmt.Fprintf(w, "  %s\n", explain.Wrap(text, 2, width))
	}
}

func age(t *metav1.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(now.Sub(t.Time), 0)) // The clocks may differ.
}

// few joins names, only the first ones unless all are wanted.
func few(names []string, all bool) string {
	const most = 3
	switch {
	case len(names) == 0:
		return "-"
	case len(names) > most && !all:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ","), len(names)-most)
	}
	return strings.Join(names, ",")
}
