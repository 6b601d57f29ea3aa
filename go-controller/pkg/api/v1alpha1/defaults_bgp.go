// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// What counts where a spec of the kinds for BGP says nothing. The CRDs' own defaults are the same.
const (
	DefaultPeerPort    = 179
	DefaultHoldTime    = 90 * time.Second
	DefaultConnectTime = 5 * time.Second
	// KeepalivesPerHoldTime must fit into a hold time, and do where keepaliveTime is absent (RFC 4271 section 4.4).
	KeepalivesPerHoldTime = 3
	// DefaultMultihopTTL counts with ebgpMultiHop.
	DefaultMultihopTTL = 255

	// DefaultBFDInterval is receiveInterval and transmitInterval, in milliseconds.
	DefaultBFDInterval      = 300
	DefaultDetectMultiplier = 3
	DefaultMinimumTTL       = 254

	DefaultAggregationLength   = 32
	DefaultAggregationLengthV6 = 128
)
