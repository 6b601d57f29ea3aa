// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The values of Network.
const (
	// Model is the lab's own topology: rows as OVN-Kubernetes writes them, without OVN-Kubernetes.
	Model = "model"
	// OVNKube is OVN-Kubernetes itself: the program that OVNKUBE names runs on each node.
	OVNKube = "ovnkube"

	// Central has one northbound and one southbound database for the cluster.
	Central = "central"
	// Interconnect has a northbound and a southbound database on each node, which is a zone of its own.
	Interconnect = "interconnect"

	// SharedGateway sends what leaves the cluster from OVN's gateway router straight to br-ex.
	SharedGateway = "shared"
	// LocalGateway sends it through the host's network stack.
	LocalGateway = "local"

	// OnProvider has the client, and what serves it, on a segment that nodes have a bridge of its own for.
	OnProvider = "provider"
	// OnLAN has them on the nodes' own network, behind br-ex.
	OnLAN = "lan"
)

// Environment variables that name OVN-Kubernetes.
const (
	// OVNKubeVariable is the path of the program ovnkube.
	OVNKubeVariable = "OVNKUBE"
	// OVNKubeCRDsVariable is the directory of its CustomResourceDefinitions.
	OVNKubeCRDsVariable = "OVNKUBE_CRDS"
)

// Network is what connects the cluster's nodes and pods.
type Network struct {
	// Kind is Model or OVNKube; default Model.
	Kind string `json:"kind"`
	// Mode is Central or Interconnect; default Central. The model has no other.
	Mode string `json:"mode"`
	// Gateway is SharedGateway or LocalGateway; default SharedGateway. The model has no other.
	Gateway string `json:"gateway"`
	// Segment is OnProvider or OnLAN; default OnProvider.
	Segment string `json:"segment"`
	// Program and CRDs are the paths that OVNKubeVariable and OVNKubeCRDsVariable give; empty for the model.
	Program string `json:"program,omitempty"`
	CRDs    string `json:"crds,omitempty"`
}

// String is how people name it, as "ovnkube central/shared on provider".
func (n Network) String() string {
	return fmt.Sprintf("%s %s/%s on %s", n.Kind, n.Mode, n.Gateway, n.Segment)
}

// Served is the segment that the client is on.
func (n Network) Served() Segment {
	if n.Segment == OnLAN {
		return LAN()
	}
	return Provider()
}

// PhysicalNetwork is the name of that segment in ovn-bridge-mappings.
func (n Network) PhysicalNetwork() string {
	if n.Segment == OnLAN {
		return "physnet"
	}
	return "provider"
}

// Uplink is the link of each node to that segment.
func (n Network) Uplink() string {
	if n.Segment == OnLAN {
		return lanLink
	}
	return providerLink
}

// Real tells whether OVN-Kubernetes itself runs.
func (n Network) Real() bool { return n.Kind == OVNKube }

// Zones tells whether each node has its own databases.
func (n Network) Zones() bool { return n.Mode == Interconnect }

func (n Network) withDefaults() Network {
	for field, value := range map[*string]string{&n.Kind: Model, &n.Mode: Central, &n.Gateway: SharedGateway, &n.Segment: OnProvider} {
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
	}{{"network", n.Kind, []string{Model, OVNKube}}, {"mode", n.Mode, []string{Central, Interconnect}}, {"gateway", n.Gateway, []string{SharedGateway, LocalGateway}}, {"segment", n.Segment, []string{OnProvider, OnLAN}}} {
		if !slices.Contains(field.values, field.value) {
			return fmt.Errorf("%s %q: want %s", field.name, field.value, strings.Join(field.values, " or "))
		}
	}
	if !n.Real() {
		if n.Mode != Central || n.Gateway != SharedGateway || n.Segment != OnProvider {
			return fmt.Errorf("network %s: the model has %s/%s on %s only", n, Central, SharedGateway, OnProvider)
		}
		return nil
	}
	for variable, path := range map[string]string{OVNKubeVariable: n.Program, OVNKubeCRDsVariable: n.CRDs} {
		if path == "" {
			return fmt.Errorf("network %s: %s is not set: contrib/ovnkube.sh builds OVN-Kubernetes and says what to set", n.Kind, variable)
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("network %s: %s: %w", n.Kind, variable, err)
		}
	}
	return nil
}
