// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// hostname is the label that selects nodes. A kubelet may set it on its own Node, also to that of another node.
const hostname = "kubernetes.io/hostname"

// unlabelled is why no object selects a node.
const unlabelled = "the node has no label " + hostname + ", so no FRRConfiguration can select it"

// hostnames are the labels by which objects select nodes.
type hostnames struct {
	// labels are by name of the node, and owners by label: of several nodes with the same label, objects are for one.
	labels map[string]string
	owners map[string]*world.Node
	// contested are the labels that several nodes have.
	contested map[string]bool
}

// newHostnames decides which node a label stands for by what a kubelet cannot change: the name of its Node, and when it
// was created.
func newHostnames(nodes []*world.Node) *hostnames {
	h := &hostnames{labels: make(map[string]string, len(nodes)), owners: make(map[string]*world.Node, len(nodes)),
		contested: map[string]bool{}}
	for _, n := range nodes {
		if n.Hostname == "" {
			continue
		}
		h.labels[n.Name] = n.Hostname
		was := h.owners[n.Hostname]
		if was != nil {
			h.contested[n.Hostname] = true
		}
		if was == nil || cmp.Or(cmp.Compare(distance(n), distance(was)), n.Created.Compare(was.Created),
			strings.Compare(n.Name, was.Name)) < 0 {
			h.owners[n.Hostname] = n
		}
	}
	return h
}

// distance is 0 if the label of a node is its name, 1 if one of both is the other one with a domain, otherwise 2.
func distance(n *world.Node) int {
	switch {
	case n.Hostname == n.Name:
		return 0
	case strings.HasPrefix(n.Name, n.Hostname+"."), strings.HasPrefix(n.Hostname, n.Name+"."):
		return 1
	}
	return 2
}

// problem returns why no object is for a node, empty if objects may be.
func (h *hostnames) problem(n *world.Node) string {
	switch owner := h.owners[n.Hostname]; {
	case n.Hostname == "":
		return unlabelled
	case owner != nil && owner.Name != n.Name:
		return fmt.Sprintf("node %s has the label %s=%s, which is that of node %s: FRRConfigurations are for the latter",
			n.Name, hostname, n.Hostname, owner.Name)
	}
	return ""
}

// sharesLabel reports whether a node shares its label with others, whose state must not affect objects of further
// nodes.
func (h *hostnames) sharesLabel(node string) bool { return h.contested[h.labels[node]] }
