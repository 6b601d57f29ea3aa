// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/crd"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/preview"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// explainCommands explain Services as kubectl slb explain does, and inject the faults that only guards report.
func explainCommands() []command {
	return []command{
		{"explain", "NAMESPACE/NAME [--from ADDRESS] [all]",
			"what kubectl slb explain shows; without all, no links that work or are unused, and no notes",
			func(c *cluster, args []string) ([]string, error) { return c.explain(args) }},
		{"overview", "", "what kubectl slb status reports as wrong", func(c *cluster, _ []string) ([]string, error) {
			return c.overview()
		}},
		{"plan", "FILE", "what kubectl slb plan shows of an edit", func(c *cluster, args []string) ([]string, error) {
			return c.plan(args[0])
		}},
		{"guard", "NODE NETWORK [KIND[:LINKS] FAULT]", "let the guard of a node report a fault of a network, or none",
			func(c *cluster, args []string) ([]string, error) {
				g, err := c.guardOf(args[0])
				if err == nil {
					kind, message, _ := strings.Cut(strings.Join(args[2:], " "), " ")
					kind, links, _ := strings.Cut(kind, ":")
					g.setFault(args[1], world.Fault{Kind: world.FaultKind(kind), Message: message, Links: links})
				}
				return nil, err
			}},
		{"tunnels", "NODE REPORT", "let the guard of a node report OVN's tunnels, as in " + v1alpha1.AnnotationTunnels,
			func(c *cluster, args []string) ([]string, error) {
				return nil, c.guardReports(args[0], v1alpha1.AnnotationTunnels, strings.Join(args[1:], " "))
			}},
		{"taken", "NODE REPORT", "let the guard of a node report that hosts have announced addresses, as in " +
			v1alpha1.AnnotationAnnouncedConflicts, func(c *cluster, args []string) ([]string, error) {
			return nil, c.guardReports(args[0], v1alpha1.AnnotationAnnouncedConflicts, strings.Join(args[1:], " "))
		}},
		{"sessions", "PEER STATE [[REASON=]ERROR]", "let all nodes report their session with a BGPPeer, as their BGP " +
			"daemons would; REASON is its lastErrorReason", func(c *cluster, args []string) ([]string, error) {
			reason, lastError, known := strings.Cut(strings.Join(args[2:], " "), "=")
			if !known {
				reason, lastError = "", reason
			}
			return nil, c.setSessions(args[0], args[1], reason, lastError)
		}},
	}
}

// guardOf returns the guard of a node.
func (c *cluster) guardOf(node string) (*guard, error) {
	p, err := c.process("node " + node)
	if err != nil {
		return nil, err
	}
	if p.guard == nil {
		return nil, fmt.Errorf("%s has no guard", p.name)
	}
	return p.guard, nil
}

// guardReports lets the guard of a node report what it would find with a real Open vSwitch.
func (c *cluster) guardReports(node, annotation, report string) error {
	g, err := c.guardOf(node)
	if err == nil {
		g.report.Report(annotation, report, false)
	}
	return err
}

// setSessions replaces the sessions in the BGPNodeStatus of all nodes.
func (c *cluster) setSessions(name, state, reason, lastError string) error {
	peer, err := c.get("bgppeer/" + name)
	if err != nil {
		return err
	}
	address, _, _ := unstructured.NestedString(peer.Object, "spec", "peerAddress")
	session := map[string]any{"peer": name, "peerAddress": address, "state": state, "lastError": lastError,
		"advertisedIPv4": 0, "advertisedIPv6": 0}
	if reason != "" {
		session["lastErrorReason"] = reason
	}
	if state == string(v1alpha1.BGPEstablished) {
		session["families"] = []string{"IPv4"}
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"sessions": []any{session}}})
	if err != nil {
		return err
	}
	client, err := c.client("node", "")
	if err != nil {
		return err
	}
	nodes, err := client.List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		node := nodes.Items[i].GetName()
		err := c.applyManifest("{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: BGPNodeStatus, metadata: {name: " + node + "}}")
		if err == nil {
			err = c.patch("bgpnodestatus/"+node, string(status), "status")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// explain performs the command explain: it reads the API objects as a user, and explains them.
func (c *cluster) explain(args []string) ([]string, error) {
	namespace, name, _ := strings.Cut(args[0], "/")
	q := explain.Question{Service: world.Key{Namespace: namespace, Name: name}, Now: time.Now()}
	all := false
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		switch {
		case rest[0] == "all":
			all = true
		case rest[0] == "--from" && len(rest) > 1:
			from, err := netip.ParseAddr(rest[1])
			if err != nil {
				return nil, fmt.Errorf("--from: %w", err)
			}
			q.From, rest = from, rest[1:]
		default:
			return nil, fmt.Errorf("option %q", rest[0])
		}
	}
	read, _, err := c.loadObjects(&q.Service)
	if err != nil {
		return nil, err
	}
	result := explain.Explain(read, q)
	if !all {
		result.Notes = nil
		var links []explain.Link
		for i := range result.Links {
			l := &result.Links[i]
			if l != result.FirstBroken && l.State != explain.OK && l.State != explain.Unused {
				links = append(links, *l)
			}
		}
		result.Links = links
	}
	return []string{result.Text(explain.Plain, 0)}, nil
}

// overview performs the command overview.
func (c *cluster) overview() ([]string, error) {
	read, _, err := c.loadObjects(nil)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range explain.Summarize(read, time.Now()).Findings {
		text := fmt.Sprintf("%s %s: %s: %s", f.State, f.Object, f.Reason, f.Message)
		if f.Command != "" {
			text += "\n  " + f.Command
		}
		out = append(out, text)
	}
	return out, nil
}

// loadObjects reads the API objects as a user.
func (c *cluster) loadObjects(service *world.Key) (*objects.Objects, *kube.Clients, error) {
	config := c.server.User().Config()
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	ours, err := kube.NewClients(config)
	if err == nil {
		err = ours.ReadFRR(config, "")
	}
	if err != nil {
		return nil, nil, err
	}
	o, err := kube.LoadObjects(c.t.Context(), core, ours, service)
	return o, ours, err
}

// plan performs the command plan.
func (c *cluster) plan(file string) ([]string, error) {
	before, ours, err := c.loadObjects(nil)
	if err == nil {
		err = kube.LoadClaims(c.t.Context(), ours, before)
	}
	if err != nil {
		return nil, err
	}
	text, err := c.file(file)
	if err != nil {
		return nil, err
	}
	after := before.Clone()
	edited, err := after.Edit([]byte(text), metav1.NamespaceDefault, time.Now(), crd.Check)
	if err != nil {
		return nil, err
	}
	changes := preview.Compare(before, after, time.Now())
	changes.Add(edited)
	return []string{changes.Text(true) + fmt.Sprintf("unchanged: %d", changes.Unchanged)}, nil
}
