// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// Defaults of the specs of the BGP kinds. The CRDs have the same defaults.
const (
	DefaultPeerPort    = 179
	DefaultHoldTime    = 90 * time.Second
	DefaultConnectTime = 5 * time.Second
	// KeepalivesPerHoldTime is the minimum ratio of holdTime to keepaliveTime, and the ratio if keepaliveTime is absent
	// (RFC 4271 section 4.4).
	KeepalivesPerHoldTime = 3
	// DefaultMultihopTTL applies with ebgpMultiHop.
	DefaultMultihopTTL = 255

	// DefaultBFDInterval is the default of receiveInterval and transmitInterval, in milliseconds.
	DefaultBFDInterval      = 300
	DefaultDetectMultiplier = 3
	DefaultMinimumTTL       = 254

	DefaultAggregationLength   = 32
	DefaultAggregationLengthV6 = 128
)

// SessionTurnLimit is the longest time for which a node holds SessionTurnLease, which lets it close Established
// sessions for an edit of a BGPPeer. Other nodes keep theirs meanwhile.
const SessionTurnLimit = 2 * time.Minute
