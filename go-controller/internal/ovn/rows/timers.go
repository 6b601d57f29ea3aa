// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"strconv"
	"strings"
	"time"
)

// tunnelTxMillis is the maximum interval at which gateways send BFD packets on tunnels, in milliseconds.
const tunnelTxMillis = 100

// bfdOption is a key of NB_Global:options (ovn-nb(5)) that controls BFD between gateways, with the default of OVS
// (ovs-vswitchd.conf.db(5), bfd).
type bfdOption struct {
	key          string
	defaultValue int
}

func timers() []bfdOption {
	return []bfdOption{{"bfd-min-rx", 1000}, {"bfd-min-tx", 100}, {"bfd-mult", 3}}
}

// originalKey returns the key of NB_Global:external_ids that stores the original value.
func (t bfdOption) originalKey() string { return "slb.k8s.ovn.org/" + t.key }

// KeyChange is a change of one key of a map. An empty New removes the key. An empty Old means that the key was
// absent.
type KeyChange struct{ Key, Old, New string }

// BFDOptions returns the changes to NB_Global's options and external_ids that make BFD between gateways as fast as the
// strictest domain requires, but never slower than other clients have configured it. The original values are stored
// in external_ids and restored once no shard requires faster ones.
func (g *Builder) BFDOptions(options, externalIDs map[string]string) (opts, ids []KeyChange) {
	want := g.requiredBFD()
	for _, t := range timers() {
		now, memory := options[t.key], externalIDs[t.originalKey()]
		base := now
		if before, ours, ok := strings.Cut(memory, ">"); ok && now == ours {
			base = before
		}
		target, remembered := base, ""
		if ours, ok := want[t.key]; ok && ours < t.value(base) {
			target = strconv.Itoa(ours)
			remembered = base + ">" + target
		}
		opts = appendChange(opts, t.key, now, target)
		ids = appendChange(ids, t.originalKey(), memory, remembered)
	}
	return opts, ids
}

// requiredBFD returns the values that the shards require.
func (g *Builder) requiredBFD() map[string]int {
	want := map[string]int{}
	strictest := func(key string, value int) {
		if old, ok := want[key]; value > 0 && (!ok || value < old) {
			want[key] = value
		}
	}
	for _, d := range g.domains {
		if rx := int(d.Detect / time.Millisecond); rx > 0 {
			strictest("bfd-min-rx", rx)
			strictest("bfd-min-tx", min(rx, tunnelTxMillis))
		}
		strictest("bfd-mult", d.DetectMultiplier)
	}
	return want
}

func (t bfdOption) value(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 {
		return n
	}
	return t.defaultValue
}

func appendChange(changes []KeyChange, key, from, to string) []KeyChange {
	if from == to {
		return changes
	}
	return append(changes, KeyChange{key, from, to})
}
