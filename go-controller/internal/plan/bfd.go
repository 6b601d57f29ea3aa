// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"
)

// MaxBFDFrames bounds the number of BFD frames per second that a gateway sends and receives in its sessions. It has one
// with every other node of the cluster, because a node sends replies to the gateway to which its session is up.
// 1,000 frames per second take 3.6 % of one CPU of ovs-vswitchd (ADR 19).
const MaxBFDFrames = 10_000

const (
	// slowestBFD is the default interval of Open vSwitch (bfd:min_rx, ovs-vswitchd.conf.db(5)). A longer one is never
	// needed: with it, MaxBFDFrames is enough for 5,000 nodes.
	slowestBFD = time.Second
	// stepBFD is the unit of longer intervals. Sessions are renegotiated when the interval changes, so a single node that
	// is added or removed must rarely change it.
	stepBFD = 50 * time.Millisecond
)

// TunnelInterval returns the interval between two BFD frames in the sessions between gateways and the other nodes of a
// cluster: failover.detectInterval, or a longer one if gateways would exchange more than MaxBFDFrames. A detect of 0
// means that no interval is wished.
func TunnelInterval(detect time.Duration, nodes int) time.Duration {
	const directions = 2
	sessions := time.Duration(max(0, nodes-1))
	needed := directions * sessions * time.Second / MaxBFDFrames
	if detect <= 0 || detect >= needed || detect >= slowestBFD {
		return detect
	}
	return min((needed+stepBFD-1)/stepBFD*stepBFD, slowestBFD)
}
