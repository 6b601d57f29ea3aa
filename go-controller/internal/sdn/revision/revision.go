// SPDX-License-Identifier: Apache-2.0

// Package revision encodes the version of a Node that its agent has applied, as used in the health checks that the
// shim sends to the agent. It has the limits of the answers, on which both must agree.
package revision

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// servicePrefix is the prefix of the service name in a health check about a version.
const servicePrefix = "slb.k8s.ovn.org/node@"

// MaxHeaders is the maximum size of the headers of an answer about a version, as HTTP/2 counts them (RFC 9113 section
// 6.5.2). They contain the reasons of up to 1,000 addresses (sdn.MaxVIPs). Whoever answers for a node makes a
// controller keep as much, for each node.
const MaxHeaders = 128 << 10

// MaxMessage is how much of that the message may have, as gRPC encodes it (EncodedLen).
const MaxMessage = MaxHeaders - 1<<10

// FailedHeader is a header of the answer about an agent itself. It has the Fingerprint of the addresses that have
// failed in the version that the agent has applied. An agent that has applied no version sends none.
const FailedHeader = "slb-failed-addresses"

// Fingerprint returns a short text that is the same for equal sets of addresses, whatever the reasons are.
func Fingerprint(failed map[netip.Addr]string) string {
	hash := fnv.New64a()
	for _, a := range slices.SortedFunc(maps.Keys(failed), netip.Addr.Compare) {
		_, _ = hash.Write([]byte(a.String() + "\n")) // never fails
	}
	return strconv.FormatUint(hash.Sum64(), 16)
}

// EncodedLen returns the length of a message in the header grpc-message, where one byte may take three ("gRPC over
// HTTP2", Percent-Byte-Encoded).
func EncodedLen(message []byte) int {
	n := len(message)
	for _, b := range message {
		if b < ' ' || b > '~' || b == '%' {
			n += 2
		}
	}
	return n
}

// ServiceName returns the service name for a gRPC health check (grpc.health.v1) that is SERVING once the agent has
// applied this version of its Node, or a later one.
func ServiceName(version string) string { return servicePrefix + version }

// Version returns the version in a service name made by ServiceName. It returns false for any other service.
func Version(service string) (version string, ok bool) {
	return strings.CutPrefix(service, servicePrefix)
}

// Newer reports whether an object's resource version follows another one (KEP-5504). An invalid version precedes all
// others.
func Newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != "" && than == ""
	}
	return order > 0
}
