// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"time"
)

// FamilyPolicy is the number of families that a Service requests (KEP-563).
type FamilyPolicy uint8

// The values of spec.ipFamilyPolicy.
const (
	SingleStack FamilyPolicy = iota
	PreferDualStack
	RequireDualStack
)

// Service is a Service of type LoadBalancer that this controller serves. A Snapshot does not contain Services of other
// types or classes, nor Services that are being deleted.
type Service struct {
	Key     Key
	UID     string
	Created time.Time
	Labels  map[string]string
	// Families are in the order of spec.ipFamilies. There is at least one.
	Families     []Family
	FamilyPolicy FamilyPolicy
	// Requested are the requested addresses and RequestedPool is the requested pool. Both are empty for any.
	// RequestedBy and PoolRequestedBy name the field or annotation of the request.
	Requested                    []netip.Addr
	RequestedPool                string
	RequestedBy, PoolRequestedBy string
	// Assigned are the addresses in status.loadBalancer.ingress.
	Assigned []netip.Addr
	// AssignedHosts are the host names without an address in status.loadBalancer.ingress. Only other controllers write
	// host names.
	AssignedHosts []string
	// ListsPorts means that the first entry of status.loadBalancer.ingress has ports.
	ListsPorts bool
	// Given are the addresses that this controller assigned, according to the status (condition Allocated). Addresses
	// in Assigned that are not in Given belong to another controller. Those in Given that are not in Assigned were removed
	// by another client.
	Given []netip.Addr
	// GivenFrom are the names of the pools of Given according to the status, empty for those in no pool.
	GivenFrom []string
	// FromRequested are those of Given that, according to the status, came from RequestedPool. They stay if a pool is
	// edited: the request is not newer than the address.
	FromRequested []netip.Addr
	// NamesClass means that spec.loadBalancerClass is one that we serve, so that no other controller serves the Service.
	NamesClass bool
	// Contested means that, according to the status, an address is not announced because another host answers for it, or
	// did so before nothing announced it.
	Contested bool
	// ExternalIPs are the addresses in spec.externalIPs. HeldExternalIPs are those that the Service holds according to
	// its status (condition ExternalIPs).
	ExternalIPs, HeldExternalIPs []netip.Addr
	Ports                        []Port
	// SharingKey lets Services with the same key share an address. Empty disables sharing.
	SharingKey string
	// Selector is spec.selector. SelectorHash keeps a hash of it as long as the selector stays the same: it returns the
	// hash, and calls compute if that is not known yet. It is nil where nothing keeps it, and without a SharingKey.
	Selector     map[string]string
	SelectorHash func(compute func() string) string `json:"-"`
	// SessionAffinity means sessionAffinity: ClientIP.
	SessionAffinity bool
	// ConnectionsMayEnd means that connections need not continue when the shard moves
	// (v1alpha1.AnnotationKeepConnections is false).
	ConnectionsMayEnd bool
	// LocalPolicy means externalTrafficPolicy: Local.
	LocalPolicy bool
	// ListedRanges is the number of source ranges that the Service lists. Of more than MaxListedRanges, none is read.
	ListedRanges int
	// SourceRanges are the fewest prefixes with the addresses of loadBalancerSourceRanges, by family. A family without an
	// entry admits all clients. A family with an empty list admits none: ranges that could not be parsed admit none, and
	// neither does a family that the list lacks. If the list has nothing but 0.0.0.0/0 and ::/0, both families are
	// admitted: 0.0.0.0/0 is the default of Kubernetes, and stands for all clients.
	SourceRanges map[Family][]netip.Prefix
	// Slices are in the order of the names of their EndpointSlices.
	Slices []*Slice
	// Problems are the fields of the object that cannot be parsed or served (field, value and what is wrong). The
	// Service is not served until they are fixed.
	Problems []string
	// Limits are fields in use that this release supports only in part. They are reported to the user and have no other
	// effect.
	Limits []string
	// Layer2Limits are the Limits that come from L2Domains. They do not apply to a Service that is announced only by
	// BGP.
	Layer2Limits []string
}

// IsCleared reports whether another client has removed the addresses that we assigned from status.loadBalancer.ingress,
// and has written nothing in their place.
func (s *Service) IsCleared() bool {
	return len(s.Given) > 0 && len(s.Assigned)+len(s.AssignedHosts) == 0
}

// Shown returns the addresses that the Service has according to its status: those in status.loadBalancer.ingress or,
// while another client has cleared these, those of its condition Allocated. No other Service gets them, although the
// Service may have been granted others since: a write of its status may never succeed.
func (s *Service) Shown() []netip.Addr {
	if s.IsCleared() {
		return s.Given
	}
	return s.Assigned
}

// MaxListedRanges is the maximum number of source ranges that a Service lists. Reading them takes longer than all else,
// and after they were merged, fewer count (plan.MaxSourceRanges).
const MaxListedRanges = 10_000

// Port is a port of a Service. Name matches it to the ports of the slices.
type Port struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Slice is an EndpointSlice of one family.
type Slice struct {
	Family    Family
	Ports     []Port
	Endpoints []Endpoint
}

// Endpoint is one backend with the conditions of KEP-1672.
type Endpoint struct {
	Addr                        netip.Addr
	Node                        string
	Ready, Serving, Terminating bool
}

// Protocol is a transport protocol as Service ports spell it.
type Protocol string

// The protocols that a Service port can have.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)
