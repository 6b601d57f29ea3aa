// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IPAddressPool is a set of IPv4 and IPv6 addresses that are allocated to Services of type LoadBalancer. Editing the
// pool never changes an allocated address: a Service keeps an address that was removed from the pool until the Service
// is recreated.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=ipaddresspools,singular=ipaddresspool,shortName=ippool,categories=slb
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.addresses`
// +kubebuilder:printcolumn:name="Auto",type=boolean,JSONPath=`.spec.autoAssign`
// +kubebuilder:printcolumn:name="Used4",type=integer,JSONPath=`.status.assignedIPv4`
// +kubebuilder:printcolumn:name="Free4",type=integer,JSONPath=`.status.availableIPv4`
// +kubebuilder:printcolumn:name="Used6",type=integer,JSONPath=`.status.assignedIPv6`
// +kubebuilder:printcolumn:name="Free6",type=integer,JSONPath=`.status.availableIPv6`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type IPAddressPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec IPAddressPoolSpec `json:"spec"`
	// +optional
	Status IPAddressPoolStatus `json:"status,omitempty"`
}

// IPAddressPoolList is a list of IPAddressPools.
//
// +kubebuilder:object:root=true
type IPAddressPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []IPAddressPool `json:"items"`
}

// IPAddressPoolSpec defines the addresses of the pool and the Services to which they may be allocated. A pool has
// either addresses or an externalPool.
//
// +kubebuilder:validation:XValidation:rule="has(self.addresses) || has(self.externalPool)",message="a pool needs addresses or an externalPool"
// +kubebuilder:validation:XValidation:rule="!has(self.addresses) || !has(self.externalPool)",message="addresses and externalPool exclude each other: keep one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.externalPool) || !has(self.exclude)",message="exclude excludes externalPool, whose provider chooses the addresses"
// +kubebuilder:validation:XValidation:rule="!has(self.externalPool) || !has(self.reservations)",message="reservations excludes externalPool, whose provider chooses the addresses"
// +kubebuilder:validation:XValidation:rule="!has(self.externalPool) || !has(self.reuseDelay)",message="reuseDelay excludes externalPool, whose provider chooses the addresses"
// +kubebuilder:validation:XValidation:rule="!has(self.externalPool) || !(has(self.avoidBuggyIPs) && self.avoidBuggyIPs)",message="avoidBuggyIPs excludes externalPool, whose provider chooses the addresses"
// +kubebuilder:validation:XValidation:rule="!has(self.externalPool) || !(has(self.externalIPs) && self.externalIPs)",message="externalIPs excludes externalPool, whose provider chooses the addresses"
type IPAddressPoolSpec struct {
	// addresses are the addresses of the pool: CIDRs (10.50.0.0/24), ranges (10.50.0.100-10.50.0.199) and single
	// addresses. IPv4 and IPv6 may be mixed. Entries must not overlap each other or the entries of another pool. Every
	// address of a CIDR can be allocated, including the first and the last; see avoidBuggyIPs and exclude.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Addresses []AddressRange `json:"addresses,omitempty"`

	// externalPool is the pool of an address management provider from which the addresses come, by Cluster API's contract
	// (ipam.cluster.x-k8s.io). The controller creates an IPAddressClaim in its own namespace for each address that a
	// Service needs, and deletes it when no Service has the address any more. Exactly one of addresses and externalPool is
	// set. The provider chooses the addresses: exclude, reservations, reuseDelay, avoidBuggyIPs and externalIPs must be
	// absent, and Services cannot request an address of the pool.
	//
	// +optional
	ExternalPool *ExternalPool `json:"externalPool,omitempty"`

	// exclude lists addresses of the pool that are never allocated, in the same formats as addresses. Each entry must
	// lie inside one entry of addresses.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Exclude []AddressRange `json:"exclude,omitempty"`

	// autoAssign allows addresses of this pool to be allocated to Services that do not request a pool. Defaults to
	// true.
	//
	// +optional
	// +kubebuilder:default=true
	AutoAssign *bool `json:"autoAssign,omitempty"`

	// avoidBuggyIPs excludes IPv4 addresses that end in .0 or .255, which some old routers drop. Defaults to false.
	//
	// +optional
	AvoidBuggyIPs bool `json:"avoidBuggyIPs,omitempty"`

	// disabled drains the pool: Services keep their addresses, but no new addresses are allocated, not even on request.
	// Defaults to false.
	//
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// serviceAllocation restricts the Services to which addresses of the pool may be allocated, and defines the order
	// of the pools that match a Service. If unset, all Services match, and the pool comes after the pools that have a
	// serviceAllocation.
	//
	// +optional
	ServiceAllocation *ServiceAllocation `json:"serviceAllocation,omitempty"`

	// quotaPerNamespace is the maximum number of addresses of the pool that the Services of one namespace may have in
	// total, 1 to 65536. A shared address counts once. Addresses in cooldown (reuseDelay) do not count: a namespace has at
	// most as many of these in addition, and if it releases more, the cooldown of those released first ends. If unset,
	// there is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	QuotaPerNamespace *int32 `json:"quotaPerNamespace,omitempty"`

	// reuseDelay is the cooldown of an address: the time after its Service is gone before the address is allocated to
	// another Service, so that external caches expire. It is a duration such as 30s or 5m, at most 24h. A Service of
	// the same namespace and name gets the address back immediately. A change also applies to addresses that are
	// already in cooldown. Defaults to 0s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(\\\\.[0-9]{1,9})?(ms|s|m|h))+$') && (duration(self) <= duration('24h'))",messageExpression="'reuseDelay: ' + self + ' is no duration of at most 24h'"
	ReuseDelay *metav1.Duration `json:"reuseDelay,omitempty"`

	// reservations reserve addresses of the pool for named Services, even while the Services do not exist. Reserved
	// addresses are not allocated to other Services.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Reservations []Reservation `json:"reservations,omitempty"`

	// externalIPs announces the addresses that Services of type LoadBalancer list in spec.externalIPs, if the addresses
	// are in this pool and the pool admits the Service. While a Service has such an address, it is not allocated to other
	// Services. A Service keeps the address for as long as it lists it (condition slb.k8s.ovn.org/ExternalIPs of the
	// Service). If two Services that do not share addresses list the same free address, the older one gets it. Defaults to
	// false.
	//
	// +optional
	ExternalIPs bool `json:"externalIPs,omitempty"`

	// sharing defines which Services with the same key in the annotation slb.k8s.ovn.org/allow-shared-ip may share an
	// address of the pool: Services of one Namespace, or of the whole Cluster. With Cluster, anyone who knows or
	// guesses a key can use the free ports of its addresses. MetalLB behaves like Cluster. A change does not separate
	// Services that already share an address. Defaults to Namespace.
	//
	// +optional
	// +kubebuilder:default=Namespace
	Sharing SharingScope `json:"sharing,omitempty"`
}

// ExternalPool refers to a pool of an address management provider. A namespaced pool is in the namespace of the
// controller.
type ExternalPool struct {
	// apiGroup is the API group of the provider's kind, for example ipam.cluster.x-k8s.io or ipam.metal3.io.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",messageExpression="self + ' is no API group'"
	APIGroup string `json:"apiGroup"`

	// kind is the provider's kind, for example InClusterIPPool, GlobalInClusterIPPool or IPPool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$')",messageExpression="self + ' is no kind'"
	Kind string `json:"kind"`

	// name is the name of the provider's pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",messageExpression="self + ' is no name of an object'"
	Name string `json:"name"`

	// ipFamily is the family of the addresses of the provider's pool. A claim cannot name a family, so a pool has one.
	// Services with both families get the other one from another pool. Defaults to IPv4.
	//
	// +optional
	// +kubebuilder:default=IPv4
	IPFamily IPFamily `json:"ipFamily,omitempty"`
}

// IPFamily is an address family, as in spec.ipFamilies of Services.
//
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

// Address families.
const (
	// IPv4 is the family of IPv4 addresses.
	IPv4 IPFamily = "IPv4"
	// IPv6 is the family of IPv6 addresses.
	IPv6 IPFamily = "IPv6"
)

// SharingScope defines whether Services in different namespaces may share an address.
//
// +kubebuilder:validation:Enum=Namespace;Cluster
type SharingScope string

// Scopes of sharing.
const (
	// SharingNamespace allows sharing within one namespace.
	SharingNamespace SharingScope = "Namespace"
	// SharingCluster allows sharing across the cluster.
	SharingCluster SharingScope = "Cluster"
)

// ServiceAllocation selects Services. A Service must match namespaces or namespaceSelectors, if either is set, and
// serviceSelectors, if set. One match within a list is sufficient.
type ServiceAllocation struct {
	// priority defines the order of the pools that match a Service: the lowest number first, starting with 1. The value
	// 0 (the default) comes last. Of equal ones, pools that an L2Domain or a
	// BGPAdvertisement announces come first; then the order is by name.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// namespaces are the names of namespaces.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelectors select namespaces by label.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`

	// serviceSelectors select Services by label.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
}

// Reservation reserves addresses for one Service.
type Reservation struct {
	// namespace is the namespace of the Service.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name is the name of the Service.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// addresses are the addresses to reserve: single addresses of the pool, at most one per family.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Addresses []IPAddress `json:"addresses"`
}

// IPAddressPoolStatus is the most recently observed status of an IPAddressPool.
type IPAddressPoolStatus struct {
	// addresses are spec.addresses as text for kubectl get, which prints lists as JSON: the first entries, and how many
	// follow, for example "10.50.0.0/24, fd00:50::/64 and 3 more". With an externalPool, it is its kind and name.
	//
	// +optional
	Addresses string `json:"addresses,omitempty"`

	// assignedIPv4 is the number of IPv4 addresses of the pool that are allocated to Services.
	//
	// +optional
	AssignedIPv4 int64 `json:"assignedIPv4"`

	// assignedIPv6 is the number of IPv6 addresses of the pool that are allocated to Services.
	//
	// +optional
	AssignedIPv6 int64 `json:"assignedIPv6"`

	// availableIPv4 is the number of IPv4 addresses that can still be allocated. With an externalPool, only the provider
	// knows, and it is 0.
	//
	// +optional
	AvailableIPv4 int64 `json:"availableIPv4"`

	// availableIPv6 is the number of IPv6 addresses that can still be allocated, at most 9223372036854775807 regardless
	// of the size of the pool, and 0 with an externalPool.
	//
	// +optional
	AvailableIPv6 int64 `json:"availableIPv6"`

	// coolingDownIPv4 is the number of IPv4 addresses of the pool in cooldown (reuseDelay): no Service has them, and
	// each can be allocated only to the Service that last had it.
	//
	// +optional
	CoolingDownIPv4 int64 `json:"coolingDownIPv4,omitempty"`

	// coolingDownIPv6 is the number of IPv6 addresses of the pool in cooldown.
	//
	// +optional
	CoolingDownIPv6 int64 `json:"coolingDownIPv6,omitempty"`

	// leases record which Service has, or last had, each address of a pool with a reuseDelay, so that a restarted
	// controller knows which addresses are in cooldown. Without a reuseDelay the list is empty. Addresses in cooldown come
	// first, the most recently released first, then the addresses in use. A pool lists at most 5000 leases and has at most
	// 5000 addresses in cooldown: beyond that the oldest cooldown ends early, and addresses in use that are not listed
	// have no cooldown if they are released while no controller runs. The list is written within about two seconds: an
	// address that was allocated and released within the last two seconds before a controller was killed has no cooldown
	// either.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	Leases []AddressLease `json:"leases,omitempty"`

	// conditions represent the current state of the pool: Accepted and Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxLeases is the maximum number of leases in the status of a pool. With names and addresses of maximum length they
// take 1.2 MB as JSON, of the 1.5 MiB that etcd accepts in one request (etcd, Operations guide, System limits).
const MaxLeases = 5000

// AddressLease is an address and a Service that has it or, during its cooldown, last had it. A shared address has one
// lease per Service.
type AddressLease struct {
	// address is an address of the pool.
	//
	// +required
	// +kubebuilder:validation:MaxLength=39
	Address string `json:"address"`

	// namespace is the namespace of the Service.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name is the name of the Service.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// releasedAt is the time at which the controller observed that the Service no longer has the address, rounded up to
	// the next full second. It is absent while the Service has the address.
	//
	// +optional
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`
}
