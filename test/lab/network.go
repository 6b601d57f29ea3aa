// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Values of the fields of Network.
const (
	// Model is the lab's own topology: the rows that OVN-Kubernetes writes, without OVN-Kubernetes.
	Model = "model"
	// OVNKube is OVN-Kubernetes itself. The program named by OVNKUBE runs on each node.
	OVNKube = "ovnkube"

	// Central is one northbound and one southbound database for the cluster.
	Central = "central"
	// Interconnect is a northbound and a southbound database on each node. Each node is a zone.
	Interconnect = "interconnect"

	// SharedGateway sends traffic that leaves the cluster from OVN's gateway router directly to br-ex.
	SharedGateway = "shared"
	// LocalGateway sends traffic that leaves the cluster through the host's network stack.
	LocalGateway = "local"

	// OnProvider places the client and its Services on a segment for which nodes have a dedicated bridge.
	OnProvider = "provider"
	// OnLAN places them on the network of the nodes, behind br-ex.
	OnLAN = "lan"
)

// Environment variables that locate OVN-Kubernetes.
const (
	// OVNKubeVariable is the path of the program ovnkube.
	OVNKubeVariable = "OVNKUBE"
	// OVNKubeCRDsVariable is the directory of its CustomResourceDefinitions.
	OVNKubeCRDsVariable = "OVNKUBE_CRDS"
)

// Network describes what connects the cluster's nodes and pods.
type Network struct {
	// Kind is Model or OVNKube. The default is Model.
	Kind string `json:"kind"`
	// Mode is Central or Interconnect. The default is Central.
	Mode string `json:"mode"`
	// Gateway is SharedGateway or LocalGateway. The default is SharedGateway, the only one of the model.
	Gateway string `json:"gateway"`
	// Segment is OnProvider or OnLAN. The default is OnProvider.
	Segment string `json:"segment"`
	// Program and CRDs are the values of OVNKubeVariable and OVNKubeCRDsVariable. They are empty for the model.
	Program string `json:"program,omitempty"`
	CRDs    string `json:"crds,omitempty"`
}

// AddFlags adds flags of a command that set the network.
func (n *Network) AddFlags(flags *flag.FlagSet) {
	for _, f := range []struct {
		into               *string
		name, value, usage string
	}{
		{&n.Kind, "network", Model, "of the cluster, as for `lab up`"},
		{&n.Mode, "mode", Central, "of the network, as for `lab up`"},
		{&n.Gateway, "gateway", SharedGateway, "mode of the nodes' gateways, as for `lab up`"},
		{&n.Segment, "segment", OnProvider, "of the addresses, as for `lab up`"},
	} {
		flags.StringVar(f.into, f.name, f.value, f.usage)
	}
}

// String returns a short name, such as "ovnkube central/shared on provider".
func (n Network) String() string {
	return fmt.Sprintf("%s %s/%s on %s", n.Kind, n.Mode, n.Gateway, n.Segment)
}

// Served returns the segment of the client.
func (n Network) Served() Segment {
	if n.Segment == OnLAN {
		return LAN()
	}
	return Provider()
}

// PhysicalNetwork returns the name of that segment in ovn-bridge-mappings.
func (n Network) PhysicalNetwork() string {
	if n.Segment == OnLAN {
		return "physnet"
	}
	return "provider"
}

// OnSegment translates text to the segment of the client: the addresses of the provider segment, which docs/examples
// have as well, and the physical network of an L2Domain.
func (n Network) OnSegment(text string) string {
	first := func(family int) string {
		subnet := n.Served().Subnets[family].Addr().String()
		return strings.TrimSuffix(strings.TrimSuffix(subnet, "0"), "::")
	}
	network := "physicalNetwork: " + n.PhysicalNetwork()
	return strings.NewReplacer("10.50.0.", first(0), "fd00:50:", first(1)+":",
		"physicalNetwork: provider", network, "physicalNetwork: physnet", network).Replace(text)
}

// Uplink returns the link of each node to that segment.
func (n Network) Uplink() string {
	if n.Segment == OnLAN {
		return lanLink
	}
	return providerLink
}

// Real reports whether OVN-Kubernetes itself runs.
func (n Network) Real() bool { return n.Kind == OVNKube }

// Zones reports whether each node has its own databases.
func (n Network) Zones() bool { return n.Mode == Interconnect }

func (n Network) withDefaults() Network {
	for field, value := range map[*string]string{&n.Kind: Model, &n.Mode: Central, &n.Gateway: SharedGateway,
		&n.Segment: OnProvider} {
		if *field == "" {
			*field = value
		}
	}
	if n.Real() {
		n.Program, n.CRDs = os.Getenv(OVNKubeVariable), os.Getenv(OVNKubeCRDsVariable)
	}
	return n
}

func (n Network) validate() error {
	for _, field := range []struct {
		name, value string
		values      []string
	}{{"network", n.Kind, []string{Model, OVNKube}}, {"mode", n.Mode, []string{Central, Interconnect}},
		{"gateway", n.Gateway, []string{SharedGateway, LocalGateway}}, {"segment", n.Segment, []string{OnProvider, OnLAN}}} {
		if !slices.Contains(field.values, field.value) {
			return fmt.Errorf("%s %q: want %s", field.name, field.value, strings.Join(field.values, " or "))
		}
	}
	if !n.Real() {
		if n.Gateway != SharedGateway || n.Segment != OnProvider {
			return fmt.Errorf("network %s: the model has gateway mode %s on %s only", n, SharedGateway, OnProvider)
		}
		return nil
	}
	for variable, path := range map[string]string{OVNKubeVariable: n.Program, OVNKubeCRDsVariable: n.CRDs} {
		if path == "" {
			return fmt.Errorf("network %s: %s is not set: see CONTRIBUTING.md", n.Kind, variable)
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("network %s: %s: %w", n.Kind, variable, err)
		}
	}
	return nil
}
