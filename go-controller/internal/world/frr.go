// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
)

// FRR is what frr-k8s has and reports, as far as the controller reads it.
type FRR struct {
	// Namespace is that of frr-k8s.
	Namespace string
	// Missing is why there is no frr-k8s, and Unread why its objects are not known; both are empty if they are known.
	Missing, Unread string
	// Configurations are all FRRConfigurations, ours included, sorted by name.
	Configurations []*FRRConfiguration
	// Nodes are the reports of the nodes, and Sessions the states of their sessions by node and frrapi.SessionID.
	Nodes    map[string]*FRRNode
	Sessions map[string]map[string]string
	// Stopped are why reports of nodes may be out of date, by node: frr-k8s does not run there, or not as a whole.
	Stopped map[string]string
	// Passwords are the passwords in the Secrets that BGP sessions may use, empty ones included. A Secret without the key
	// is absent.
	Passwords map[string]string
	// Refused is why the API server refused the last write for a peer, by peer.
	Refused map[string]string
	// Selecting are the RouteAdvertisements of OVN-Kubernetes that select our objects for a peer, sorted, by peer.
	Selecting map[string][]string
}

// FRRConfiguration is an object of frr-k8s.
type FRRConfiguration struct {
	Name string
	// Peer is the name of the BGPPeer for which we wrote it, empty for an object of others.
	Peer string
	// Nodes are the names of the nodes that the selector matches, sorted. Invalid is why it matches none.
	Nodes   []string
	Invalid string
	// Spec is that of an object of ours, and Foreign what is read of one of others.
	Spec    frrapi.Spec
	Foreign *frrapi.Converted
}

// FRRNode is what frr-k8s reports of a node.
type FRRNode struct {
	// Running are the prefixes that the node advertises, and Restrictions why it does not advertise others.
	Running      frrapi.Running
	Restrictions frrapi.Restrictions
	// Problem is why the node does not use the newest configuration, as it reports it, empty if it does.
	Problem string
	// Unread is why what the node reports is not known, empty if it is. Running and the states of its sessions are then
	// empty.
	Unread string
}

// Available reports whether there is a frr-k8s whose objects are known.
func (f *FRR) Available() bool { return f != nil && f.Missing == "" && f.Unread == "" }

// Running returns the prefixes that a node advertises to a peer.
func (f *FRR) Running(node string, p *Peer) []netip.Prefix {
	if f == nil || f.Nodes[node] == nil {
		return nil
	}
	return f.Nodes[node].Running[p.NeighborID()]
}

// Inactive reports whether FRR on a node has a family not activated for a peer.
func (f *FRR) Inactive(node string, p *Peer, family Family) bool {
	if f == nil || f.Nodes[node] == nil {
		return false
	}
	r := f.Nodes[node].Restrictions[p.NeighborID()]
	return family == IPv4 && r.WithoutIPv4 || family == IPv6 && r.WithoutIPv6
}

// Prefixes returns the prefixes in our objects for a peer, as they are written there.
func (f *FRR) Prefixes(peer string) map[string]bool {
	out := map[string]bool{}
	if f == nil {
		return out
	}
	for _, c := range f.Configurations {
		if c.Peer != peer {
			continue
		}
		for _, r := range c.Spec.BGP.Routers {
			for _, p := range r.Prefixes {
				out[p] = true
			}
		}
	}
	return out
}

// FRRPrefix is before each reason of WithoutFRR.
const FRRPrefix = "spec.backend: FRRK8s: "

// WithoutFRR returns why there are no sessions of frr-k8s, and whether that is known.
func (f *FRR) WithoutFRR() (why string, known bool) {
	switch {
	case f == nil:
		return FRRPrefix + "the controller has no --frr-k8s-namespace (docs/tasks/bgp.md)", true
	case f.Missing != "":
		return FRRPrefix + f.Missing, true
	case f.Unread != "":
		return FRRPrefix + f.Unread, false
	}
	return "", true
}

// session returns the state of a node's session with a peer.
func (f *FRR) session(node *Node, p *Peer) PeerSession {
	s := PeerSession{ByFRR: true}
	if why, known := f.WithoutFRR(); why != "" {
		s.Problem, s.Unknown = why, !known
		return s
	}
	state, reported := f.Sessions[node.Name][frrapi.SessionID(p.NeighborID())]
	report := f.Nodes[node.Name]
	switch {
	case node.Unreachable:
		s.Unknown, s.Problem = true, "the node's kubelet no longer reports, so what frr-k8s reports of it has expired"
	case f.Stopped[node.Name] != "":
		s.Unknown, s.Problem = true, f.Stopped[node.Name]
	case report == nil:
		s.Unknown, s.Problem = true, "frr-k8s reports nothing of the node (FRRNodeState): does it run there?"
	case report.Unread != "":
		s.Unknown, s.Problem = true, report.Unread
	case state == "Established" && report.Restrictions[p.NeighborID()].Unclear != "":
		s.Unknown, s.Problem = true, report.Restrictions[p.NeighborID()].Unclear+", so what FRR sends to the "+
			"peer is not known: does an FRRConfiguration of others have rawConfig?"
	case state == "Established":
		s.Established = true
	case !reported && report.Problem != "":
		s.Problem = report.Problem
	case !reported:
		s.Unknown, s.Problem = true, "frr-k8s has not reported the session (BGPSessionState) yet"
	default:
		s.Problem = fmt.Sprintf("the session of FRR is %s", state)
	}
	return s
}

// Established reports whether FRR is known to have a session of a node with a peer, which need not select the node.
func (f *FRR) Established(node *Node, p *Peer) bool { return f.session(node, p).Established }

// AddFRRSessions adds the sessions with peers whose backend is frr-k8s to those that nodes report, in place of what
// nodes may report of them.
func (w *Snapshot) AddFRRSessions() {
	nodes := map[string]*Node{}
	for _, n := range w.Nodes {
		nodes[n.Name] = n
	}
	cloned := map[string]bool{}
	for _, p := range w.Peers {
		if !p.FRRK8s {
			continue
		}
		for _, name := range p.Nodes {
			if nodes[name] == nil {
				continue
			}
			if w.Sessions == nil {
				w.Sessions = map[string]map[string]PeerSession{}
			}
			if !cloned[name] {
				sessions := maps.Clone(w.Sessions[name])
				if sessions == nil {
					sessions = map[string]PeerSession{}
				}
				w.Sessions[name], cloned[name] = sessions, true
			}
			w.Sessions[name][p.Name] = w.FRR.session(nodes[name], p)
		}
	}
}

// Ours reports whether any FRRConfiguration is ours.
func (f *FRR) Ours() bool {
	return f != nil && slices.ContainsFunc(f.Configurations, func(c *FRRConfiguration) bool { return c.Peer != "" })
}
