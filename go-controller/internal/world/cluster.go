// SPDX-License-Identifier: Apache-2.0

package world

import "net/netip"

// Cluster holds the settings and facts that apply to the whole cluster.
type Cluster struct {
	// ID distinguishes this cluster from others on the same segment. It is the UID of namespace kube-system. MAC
	// addresses are derived from it.
	ID string
	// ClusterSubnets are those of OVN-Kubernetes, for pods. ServiceSubnets are the ClusterIP ranges.
	ClusterSubnets, ServiceSubnets []netip.Prefix
	// InternalSubnets are the subnets that OVN-Kubernetes reserves for itself (join, transit, masquerade), as far as
	// OpenShift reports them.
	InternalSubnets []netip.Prefix
	// ModeSetting selects the dataplanes that are enabled.
	ModeSetting ModeSetting
	// AutoAssignCIDRs are OpenShift's autoAssignCIDRs, as written there. If there are any, OpenShift assigns addresses
	// to Services, and no other controller must.
	AutoAssignCIDRs []string
	// Limits bound what is programmed.
	Limits Limits
	// OpenShiftSDN means that there is no OVN. The kernels of the nodes hold the addresses.
	OpenShiftSDN bool
	// NoDatabase means that no northbound database is configured. Segments can then be served only with interconnect,
	// by agents that program the databases of their zones. OpenShift SDN needs no database.
	NoDatabase bool
}

// Limits are the largest numbers of backends (addresses x ports x endpoints) that are programmed for a Service, for all
// Services of a namespace, and in total. Source ranges count as well for the latter two. 0 is no limit.
type Limits struct{ ServiceBackends, NamespaceBackends, Backends int }
