// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// objects are the API objects of one golden.
type objects struct {
	pools      []*v1alpha1.IPAddressPool
	domains    []*v1alpha1.L2Domain
	nodes      []*corev1.Node
	namespaces convert.Namespaces
	services   []*corev1.Service
	slices     []*discoveryv1.EndpointSlice
	leases     []*coordinationv1.Lease

	peers          []*v1alpha1.BGPPeer
	advertisements []*v1alpha1.BGPAdvertisement
	profiles       []*v1alpha1.BFDProfile
	communities    []*v1alpha1.Community
	secrets        []*corev1.Secret

	configurations      []*frr.Configuration
	routeAdvertisements []*frr.RouteAdvertisements
	nodeStates          []*frr.NodeState
	sessionStates       []*frr.SessionState
	egressIPs           []*unstructured.Unstructured
}

// manifests decodes YAML documents in the same way as the controller reads the API.
func (c *Case) manifests(data []byte) error {
	o := objects{namespaces: convert.Namespaces{}}
	for i, doc := range bytes.Split(data, []byte("\n---\n")) {
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		if err := o.decode(doc); err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	for _, p := range o.pools {
		c.World.Pools = append(c.World.Pools, convert.Pool(p, o.namespaces))
	}
	for _, d := range o.domains {
		c.World.Domains = append(c.World.Domains, convert.Domain(d, o.pools, o.nodes))
	}
	related := o.relatedObjects()
	related.FRR = o.frr()
	c.World.FRR = related.FRR
	for _, p := range o.peers {
		c.World.Peers = append(c.World.Peers, convert.Peer(p, related))
	}
	for _, a := range o.advertisements {
		c.World.Advertisements = append(c.World.Advertisements, convert.Advertisement(a, related))
	}
	for _, n := range o.nodes {
		node := convert.Node(n, convert.Options{DrainTaints: convert.DefaultDrainTaints()})
		for _, l := range o.leases {
			if l.Name == n.Name {
				node = convert.WithReport(node, convert.ReadReport(l))
			}
		}
		c.World.Nodes = append(c.World.Nodes, node)
	}
	for _, s := range o.services {
		var mine []*discoveryv1.EndpointSlice
		for _, e := range o.slices {
			if e.Namespace == s.Namespace && e.Labels[discoveryv1.LabelServiceName] == s.Name {
				mine = append(mine, e)
			}
		}
		ws, ours := convert.Service(s, convert.Slices(mine), convert.Options{DefaultClass: true})
		c.World.Listed.Add(convert.ListedExternalIPs(s, ws))
		if !ours && len(s.Spec.ExternalIPs) > 0 {
			continue // It counts for what it lists.
		}
		if !ours {
			return fmt.Errorf("service %s/%s is not ours to serve", s.Namespace, s.Name)
		}
		if len(s.Status.Conditions) == 0 {
			ws.Given = ws.Assigned
		}
		c.World.Services = append(c.World.Services, ws)
	}
	for _, e := range o.egressIPs {
		c.World.EgressIPs[e.GetName()] = convert.EgressIPAddrs(e)
	}
	c.World.AddFRRSessions()
	return nil
}

// frrNamespace is the namespace of frr-k8s in goldens.
const frrNamespace = "frr-k8s-system"

// frr returns what frr-k8s has; nil if no BGPPeer uses it.
func (o *objects) frr() *world.FRR {
	if !slices.ContainsFunc(o.peers, func(p *v1alpha1.BGPPeer) bool { return p.Spec.Backend == v1alpha1.BackendFRRK8s }) {
		return nil
	}
	out := &world.FRR{Namespace: frrNamespace, Nodes: map[string]*world.FRRNode{},
		Sessions: map[string]map[string]string{}, Passwords: map[string]string{}}
	for _, c := range o.configurations {
		out.Configurations = append(out.Configurations, frr.Read(c, o.nodes))
	}
	slices.SortFunc(out.Configurations, func(a, b *world.FRRConfiguration) int { return cmp.Compare(a.Name, b.Name) })
	for _, s := range o.nodeStates {
		out.Nodes[s.Name] = frr.ReadNode(frr.Trimmed(s))
	}
	for _, s := range o.sessionStates {
		if out.Sessions[s.Status.Node] == nil {
			out.Sessions[s.Status.Node] = map[string]string{}
		}
		out.Sessions[s.Status.Node][s.Status.Peer] = s.Status.BGPStatus
	}
	var peers []string
	for _, p := range o.peers {
		peers = append(peers, p.Name)
	}
	out.Selecting = frr.Selecting(o.routeAdvertisements, peers)
	for _, s := range o.secrets {
		if p, is := frr.Password(s); s.Namespace == frrNamespace && is {
			out.Passwords[s.Name] = p
		}
	}
	return out
}

func (o *objects) relatedObjects() convert.RelatedObjects {
	related := convert.RelatedObjects{Nodes: o.nodes, Pools: o.pools, Peers: map[string]*v1alpha1.BGPPeer{},
		Profiles: map[string]*v1alpha1.BFDProfile{}, Secrets: map[string]*corev1.Secret{}}
	for _, p := range o.peers {
		related.Peers[p.Name] = p
	}
	for _, p := range o.profiles {
		related.Profiles[p.Name] = p
	}
	for _, secret := range o.secrets {
		related.Secrets[secret.Name] = secret
	}
	related.Aliases, _ = convert.ReadAliases(o.communities)
	return related
}

func (o *objects) decode(doc []byte) error {
	var t metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &t); err != nil {
		return err
	}
	switch t.Kind {
	case "IPAddressPool":
		return decode(doc, &o.pools)
	case "L2Domain":
		return decode(doc, &o.domains)
	case "Node":
		return decode(doc, &o.nodes)
	case "Lease":
		return decode(doc, &o.leases)
	case "Namespace":
		var list []*corev1.Namespace
		err := decode(doc, &list)
		for _, n := range list {
			o.namespaces[n.Name] = n.Labels
		}
		return err
	case "Service":
		return decode(doc, &o.services)
	case "EndpointSlice":
		return decode(doc, &o.slices)
	case "BGPPeer":
		return decode(doc, &o.peers)
	case "BGPAdvertisement":
		return decode(doc, &o.advertisements)
	case "BFDProfile":
		return decode(doc, &o.profiles)
	case "Community":
		return decode(doc, &o.communities)
	case "Secret":
		return decode(doc, &o.secrets)
	case "FRRConfiguration":
		return decode(doc, &o.configurations)
	case "RouteAdvertisements":
		return decode(doc, &o.routeAdvertisements)
	case "FRRNodeState":
		return decode(doc, &o.nodeStates)
	case "BGPSessionState":
		return decode(doc, &o.sessionStates)
	case "EgressIP":
		return decode(doc, &o.egressIPs)
	}
	return fmt.Errorf("kind %q is not for goldens", t.Kind)
}

func decode[T any](doc []byte, list *[]*T) error {
	v := new(T)
	if err := yaml.UnmarshalStrict(doc, v); err != nil {
		return err
	}
	*list = append(*list, v)
	return nil
}
