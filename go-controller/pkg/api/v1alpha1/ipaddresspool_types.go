// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IPAddressPool is a set of IPv4 and IPv6 addresses that Services of type
// LoadBalancer are given. An address once given is never changed by an edit of
// the pool: what an edit would take away is kept until the Service is recreated.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=ipaddresspools,singular=ipaddresspool,shortName=ippool,categories=slb
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.spec.addresses`
// +kubebuilder:printcolumn:name="Auto",type=boolean,JSONPath=`.spec.autoAssign`
// +kubebuilder:printcolumn:name="Used4",type=integer,JSONPath=`.status.assignedIPv4`
// +kubebuilder:printcolumn:name="Free4",type=integer,JSONPath=`.status.availableIPv4`
// +kubebuilder:printcolumn:name="Used6",type=integer,JSONPath=`.status.assignedIPv6`
// +kubebuilder:printcolumn:name="Free6",type=integer,JSONPath=`.status.availableIPv6`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type IPAddressPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec IPAddressPoolSpec `json:"spec"`
	// +optional
	Status IPAddressPoolStatus `json:"status,omitempty"`
}

// IPAddressPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type IPAddressPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []IPAddressPool `json:"items"`
}

// IPAddressPoolSpec says which addresses there are and who may have them.
type IPAddressPoolSpec struct {
	// Addresses of the pool: CIDRs (10.50.0.0/24), ranges (10.50.0.100-10.50.0.199)
	// and single addresses, IPv4 and IPv6 mixed as needed. Entries do not overlap
	// each other, nor the entries of another pool. All addresses of a CIDR are given,
	// the first and the last too; see avoidBuggyIPs and exclude.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Addresses []AddressRange `json:"addresses"`

	// Exclude lists addresses that are never given although they are in the pool,
	// written as in addresses. Each entry lies inside one entry of addresses.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Exclude []AddressRange `json:"exclude,omitempty"`

	// AutoAssign lets Services that ask for no pool have addresses of this one.
	// Default true.
	//
	// +optional
	// +kubebuilder:default=true
	AutoAssign *bool `json:"autoAssign,omitempty"`

	// AvoidBuggyIPs leaves out IPv4 addresses that end in .0 or .255, which some
	// old routers drop. Default false.
	//
	// +optional
	AvoidBuggyIPs bool `json:"avoidBuggyIPs,omitempty"`

	// Disabled drains the pool: Services keep the addresses they have, no Service
	// is given a new one, not even on request. Default false.
	//
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// ServiceAllocation narrows the Services that may have addresses of the pool and
	// orders the pools that could serve one. Absent: every Service, after the pools
	// that have it.
	//
	// +optional
	ServiceAllocation *ServiceAllocation `json:"serviceAllocation,omitempty"`

	// QuotaPerNamespace is how many addresses of the pool the Services of one
	// namespace may have in total, 1 to 65536; a shared address counts once. Absent: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	QuotaPerNamespace *int32 `json:"quotaPerNamespace,omitempty"`

	// ReuseDelay is how long an address rests after its Service is gone before another Service gets it, so that caches
	// outside forget it: a duration such as 30s or 5m, at most 24h. The Service of the same namespace and name gets it
	// back at once. An edit applies to the addresses that rest already, too. Default 0s.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}(\\\\.[0-9]{1,9})?(ms|s|m|h))+$') && (duration(self) <= duration('24h'))",messageExpression="'reuseDelay: ' + self + ' is no duration of at most 24h'"
	ReuseDelay *metav1.Duration `json:"reuseDelay,omitempty"`

	// Reservations keep addresses of the pool for named Services, also while these
	// do not exist. Nobody else is given them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Reservations []Reservation `json:"reservations,omitempty"`

	// ExternalIPs announces the addresses that Services of type LoadBalancer list
	// themselves in spec.externalIPs, if they lie in this pool and it admits the Service.
	// They are given to nobody else meanwhile. The Service that has one keeps it as long as it
	// lists it (condition slb.k8s.ovn.org/ExternalIPs of the Service); of two Services that list
	// a free one and don't share it, the older one gets it. Default false.
	//
	// +optional
	ExternalIPs bool `json:"externalIPs,omitempty"`

	// Sharing says which Services with the same key in the annotation
	// slb.k8s.ovn.org/allow-shared-ip may share an address of the pool: those of one
	// Namespace, or of the whole Cluster, where whoever knows or guesses a key gets the free ports of
	// its addresses. MetalLB shares like Cluster. An edit does not part Services that share an
	// address already. Default Namespace.
	//
	// +optional
	// +kubebuilder:default=Namespace
	Sharing SharingScope `json:"sharing,omitempty"`
}

// SharingScope is how far apart Services that share an address may be.
//
// +kubebuilder:validation:Enum=Namespace;Cluster
type SharingScope string

// The scopes of sharing.
const (
	// SharingNamespace: in one namespace.
	SharingNamespace SharingScope = "Namespace"
	// SharingCluster: anywhere in the cluster.
	SharingCluster SharingScope = "Cluster"
)

// ServiceAllocation selects Services. A Service must pass namespaces or
// namespaceSelectors, if either is given, and serviceSelectors, if given; within
// a list one match is enough.
type ServiceAllocation struct {
	// Priority orders the pools that may serve a Service: lowest number first,
	// from 1; 0 (the default) comes after these. Equal ones are tried by name.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// Namespaces are names of namespaces.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// NamespaceSelectors match labels of namespaces.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`

	// ServiceSelectors match labels of Services.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
}

// Reservation keeps addresses for one Service.
type Reservation struct {
	// Namespace of the Service.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the Service.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Addresses kept, single ones of the pool: at most one a family.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Addresses []IPAddress `json:"addresses"`
}

// IPAddressPoolStatus is what the controller saw last.
type IPAddressPoolStatus struct {
	// AssignedIPv4 is how many IPv4 addresses of the pool Services have.
	//
	// +optional
	AssignedIPv4 int64 `json:"assignedIPv4"`

	// AssignedIPv6 is how many IPv6 addresses of the pool Services have.
	//
	// +optional
	AssignedIPv6 int64 `json:"assignedIPv6"`

	// AvailableIPv4 is how many more IPv4 addresses the pool can give.
	//
	// +optional
	AvailableIPv4 int64 `json:"availableIPv4"`

	// AvailableIPv6 is how many more IPv6 addresses the pool can give, at most
	// 9223372036854775807 however large the pool is.
	//
	// +optional
	AvailableIPv6 int64 `json:"availableIPv6"`

	// RestingIPv4 is how many IPv4 addresses of the pool nobody has and nobody but their
	// last Service is given (reuseDelay).
	//
	// +optional
	RestingIPv4 int64 `json:"restingIPv4,omitempty"`

	// RestingIPv6 is how many IPv6 addresses rest.
	//
	// +optional
	RestingIPv6 int64 `json:"restingIPv6,omitempty"`

	// Leases say who has the addresses of a pool with a reuseDelay, or had them last, so
	// that a controller that starts anew knows which ones rest; without a reuseDelay there
	// are none. First come the addresses that rest, the latest first, then those in use. A
	// pool lists 5000 at most and lets 5000 addresses rest at most: the oldest rest ends
	// early, and those in use that are not listed don't rest if they are freed while no
	// controller runs. The list is written within about two seconds: an address that was
	// given and freed within the last ones of a controller that was killed doesn't rest
	// either.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	Leases []AddressLease `json:"leases,omitempty"`

	// Conditions of the pool: Accepted and Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxLeases is how many leases the status of a pool lists. With the longest names and
// addresses they take 1.2 MB as JSON, of the 1.5 MiB that etcd takes in one request
// (etcd, Operations guide, System limits).
const MaxLeases = 5000

// AddressLease is an address with a Service that has it or, if it rests, had it last. A
// shared address has one lease for each Service.
type AddressLease struct {
	// Address of the pool.
	//
	// +required
	// +kubebuilder:validation:MaxLength=39
	Address string `json:"address"`

	// Namespace of the Service.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Name of the Service.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// ReleasedAt is when the controller saw that the Service doesn't have the address any
	// more, rounded up to a second; absent while it has it.
	//
	// +optional
	ReleasedAt *metav1.Time `json:"releasedAt,omitempty"`
}
