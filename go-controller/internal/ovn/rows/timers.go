// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// tunnelTxMillis is the maximum of bfd-min-tx, in milliseconds, unless a cluster has so many nodes that their frames
// must be fewer. The receiver's bfd-min-rx determines the interval of the frames.
const tunnelTxMillis = 100

// bfdOption is a key of NB_Global:options (ovn-nb(5)) that controls BFD on tunnels, with the default of OVS
// (ovs-vswitchd.conf.db(5), bfd).
type bfdOption struct {
	key          string
	defaultValue int
	// maySlow is set if a value above the default is written, too, unless another client has configured one.
	maySlow bool
}

func timers() []bfdOption {
	return []bfdOption{{"bfd-min-rx", 1000, false}, {"bfd-min-tx", 100, true}, {"bfd-mult", 3, false}}
}

// originalPrefix precedes the key of an option in the key of NB_Global:external_ids that stores its original value.
const originalPrefix = "slb.k8s.ovn.org/"

// originalKey returns the key of NB_Global:external_ids that stores the original value.
func (o bfdOption) originalKey() string { return originalPrefix + o.key }

// TimerOf returns the key of the option whose original value a key of NB_Global:external_ids stores.
func TimerOf(key string) string { return strings.TrimPrefix(key, originalPrefix) }

// KeyChange is a change of one key of a map. An empty New removes the key. An empty Old means that the key was
// absent.
type KeyChange struct{ Key, Old, New string }

// BFDOptions returns the changes to NB_Global's options and external_ids that make BFD as fast as the strictest domain
// requires and the number of nodes allows (plan.TunnelInterval), but never slower than other clients have configured
// it. The original values are stored in external_ids and restored once no shard requires other ones.
func (b *Builder) BFDOptions(options, externalIDs map[string]string) (opts, ids []KeyChange) {
	want := b.requiredBFD()
	for _, t := range timers() {
		now, memory := options[t.key], externalIDs[t.originalKey()]
		base := now
		if before, ours, ok := strings.Cut(memory, ">"); ok && now == ours {
			base = before
		}
		target, remembered := base, ""
		if ours, ok := want[t.key]; ok && (ours < t.value(base) || t.maySlow && base == "" && ours > t.defaultValue) {
			target = strconv.Itoa(ours)
			remembered = base + ">" + target
		}
		opts = appendChange(opts, t.key, now, target)
		ids = appendChange(ids, t.originalKey(), memory, remembered)
	}
	return opts, ids
}

// requiredBFD returns the values that the shards require. With interconnect, only the zones of nodes that are no
// gateway may use a longer interval than the domains require: the two ends of a session negotiate the longer one (RFC
// 5880 section 6.8.7), and gateways detect each other as fast as required. One database for all nodes has one interval.
func (b *Builder) requiredBFD() map[string]int {
	want := map[string]int{}
	var detect time.Duration
	for _, d := range b.domains {
		if d.Detect > 0 && (detect == 0 || d.Detect < detect) {
			detect = d.Detect
		}
		if old, ok := want["bfd-mult"]; d.DetectMultiplier > 0 && (!ok || d.DetectMultiplier < old) {
			want["bfd-mult"] = d.DetectMultiplier
		}
	}
	interval := detect
	if !slices.ContainsFunc(b.shardList, func(s *shard) bool { return s.local && b.zone != nil }) {
		interval = plan.TunnelInterval(detect, b.nodeCount)
	}
	rx := int(interval / time.Millisecond)
	switch {
	case rx == 0:
	case interval == detect:
		want["bfd-min-rx"], want["bfd-min-tx"] = rx, min(rx, tunnelTxMillis)
	default:
		want["bfd-min-rx"], want["bfd-min-tx"] = rx, rx
	}
	return want
}

func (o bfdOption) value(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return o.defaultValue
}

func appendChange(changes []KeyChange, key, from, to string) []KeyChange {
	if from == to {
		return changes
	}
	return append(changes, KeyChange{key, from, to})
}
