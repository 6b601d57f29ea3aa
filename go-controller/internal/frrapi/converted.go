// SPDX-License-Identifier: Apache-2.0

package frrapi

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
)

// Converted is what frr-k8s makes of an FRRConfiguration: what it compares with other objects, and what is used of
// objects of others. It does not depend on Secrets.
type Converted struct {
	// Unread is why nothing else is known of the object, empty if it is within the limits.
	Unread string
	// Invalid is why frr-k8s refuses the object by itself, nil if it does not.
	Invalid *Problem
	Routers []ConvertedRouter
	// Profiles have the modes that frr-k8s takes for unset ones.
	Profiles []BFDProfile
	// Prefixes are those of all routers, sorted, without bits after their length.
	Prefixes []netip.Prefix
	// Digest identifies the object without its rawConfig, apart from metadata.
	Digest [sha256.Size]byte
}

// Problem is why frr-k8s refuses an object. Field is its path in spec.bgp.
type Problem struct{ Field, Message string }

// ConvertedRouter is a BGP instance in a VRF.
type ConvertedRouter struct {
	ASN       uint32
	ID, VRF   string
	Neighbors []ConvertedNeighbor
}

// ConvertedNeighbor is a neighbor of a router.
type ConvertedNeighbor struct {
	Session
	// Other are the fields that are not known here, except toReceive.
	Other map[string]json.RawMessage
	// Addr and Source are Address and SourceAddress, the zero Addr if there is none.
	Addr, Source netip.Addr
	Family       Family
	LocalPref    []PrefixLocalPref
}

// PrefixLocalPref is the local preference of a prefix, as it is written in the object.
type PrefixLocalPref struct {
	Prefix    string
	LocalPref uint32
}

// The limits of an FRRConfiguration of others, which may come from whoever can write one. MaxText is the limit of its
// JSON without rawConfig, MaxAdvertised that of its prefixes and of its local preferences (prefixes x neighbors).
const (
	// MaxSections is the maximum number of its routers, neighbors and BFD profiles together.
	MaxSections = 2048
	// maxImported is the maximum number of prefixes that its routers import from each other, in sum.
	maxImported = 8 * MaxAdvertised
	// MaxSelector is the maximum length of its nodeSelector in JSON, in bytes.
	MaxSelector = 256 << 10
	// MaxMerged is the maximum Weight of all objects of others for a node.
	MaxMerged = MaxAdvertised + MaxSections
)

// ConvertForeign converts an object of others. Of one that is beyond the limits, only Unread and the Digest are set.
func ConvertForeign(spec *Spec) *Converted {
	text, err := json.Marshal(Spec{BGP: spec.BGP, NodeSelector: spec.NodeSelector})
	if err == nil {
		err = checkLimits(len(text), &spec.BGP)
	}
	out := &Converted{}
	if err == nil {
		out = Convert(spec)
	} else {
		out.Unread = err.Error()
	}
	out.Digest = sha256.Sum256(text)
	return out
}

func checkLimits(text int, bgp *BGP) error {
	sections, prefixes, imported, preferences := len(bgp.Routers)+len(bgp.BFDProfiles), 0, 0, 0
	inVRF := make(map[string]int, len(bgp.Routers))
	for i := range bgp.Routers {
		inVRF[bgp.Routers[i].VRF] = len(bgp.Routers[i].Prefixes)
	}
	for i := range bgp.Routers {
		r := &bgp.Routers[i]
		sections += len(r.Neighbors)
		prefixes += len(r.Prefixes)
		for _, from := range r.Imports {
			imported += inVRF[from.VRF]
			if from.VRF == "default" {
				imported += inVRF[""]
			}
		}
		for j := range r.Neighbors {
			for _, l := range r.Neighbors[j].Advertise.LocalPref {
				preferences += len(l.Prefixes)
			}
		}
	}
	for _, limit := range []struct {
		is, most int
		what     string
	}{{text, MaxText, "bytes without rawConfig"}, {prefixes, MaxAdvertised, "prefixes"},
		{imported, maxImported, "imported prefixes"},
		{preferences, MaxAdvertised, "prefixes x neighbors with a local preference"},
		{sections, MaxSections, "routers, neighbors and BFD profiles"}} {
		if limit.is > limit.most {
			return fmt.Errorf("%d %s, at most %d are read", limit.is, limit.what, limit.most)
		}
	}
	return nil
}

// Weight is proportional to what merging an object with others costs.
func (c *Converted) Weight() int {
	n := 1 + len(c.Routers) + len(c.Profiles)
	for i := range c.Routers {
		n += len(c.Routers[i].Neighbors)
		for j := range c.Routers[i].Neighbors {
			n += len(c.Routers[i].Neighbors[j].LocalPref)
		}
	}
	return n
}

// Family is a family of routes that a neighbor has.
type Family string

// The families of neighbors.
const (
	IPv4      Family = "ipv4"
	IPv6      Family = "ipv6"
	DualStack Family = "dual"
)

// Family returns the families that a neighbor has; false if its address is invalid.
func (s *Session) Family() (Family, bool) {
	a, err := netip.ParseAddr(s.Address)
	switch {
	case s.Address != "" && (err != nil || a.Zone() != ""):
		return "", false
	case s.Interface != "" || s.DualStack:
		return DualStack, true
	case a.Unmap().Is4():
		return IPv4, true
	}
	return IPv6, true
}

// Has reports whether routes of a prefix are sent.
func (f Family) Has(p netip.Prefix) bool {
	return f == DualStack || (f == IPv4) == p.Addr().Unmap().Is4()
}

// ParsePrefix parses a prefix as frr-k8s does, by net.ParseCIDR: it may have bits after its length, and the length
// leading zeros.
func ParsePrefix(text string) (netip.Prefix, bool) {
	address, length, _ := strings.Cut(text, "/")
	a, err := netip.ParseAddr(address)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, false
	}
	bits, err := strconv.ParseUint(length, 10, 8)
	if err != nil || int(bits) > a.BitLen() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, int(bits)), true
}

// maxMessage is the maximum length in bytes of a message with text of an object.
const maxMessage = 256

// Bounded returns a message with text of an object of others as one line of a limited length.
func Bounded(message string) string {
	line := printable.Line(message)
	if len(line) <= maxMessage {
		return strings.Clone(line)
	}
	return strings.ToValidUTF8(line[:maxMessage-len("...")], "") + "..."
}
