// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
)

const (
	// flowCheckInterval is the interval between checks of the flows of bridges. Open vSwitch reports port changes as they
	// happen.
	flowCheckInterval = 2 * time.Second
	// minRest is how long a change waits at least after a check, and restShare how many times as long as the check took:
	// a dump takes the main thread of ovs-vswitchd, and Open vSwitch's database changes with each pod.
	minRest   = 500 * time.Millisecond
	restShare = 9
	// dumpTimeout limits one dump of the flows of a bridge.
	dumpTimeout = 5 * time.Second
	// maxStaleAddrs limits the addresses in a report: annotations of a Lease are limited to 256 KiB.
	maxStaleAddrs = 2000
	// unreadableAfter is how long flows, or Open vSwitch's database, may be unreadable before the last report is
	// withdrawn.
	unreadableAfter = 30 * time.Second
)

// bridges observes the ports that OVN has on the node's bridges for L2Domains, and the flows there. On its own bridge
// OVN-Kubernetes has a flow for ARP requests and neighbour solicitations for each Service address. The flow outputs
// to the ports that existed when OVN-Kubernetes processed the Service, so a port that was added later receives no
// request.
type bridges struct {
	networks func() (map[string]ovn.Uplinks, bool)
	// control is the pattern of ovs-vswitchd's control socket (ovs-appctl(8)).
	control string
	// dump returns the flows of a bridge.
	dump    func(ctx context.Context, bridge string) (string, error)
	changed chan struct{}
	report  func(map[string]convert.Localnet)
	// reported is the last report, nil if there is none. lastError is why the flows could not be read last.
	reported  map[string]convert.Localnet
	lastError string
	// read is when all flows were last read, at first when they were found unreadable. withdrawn means that nothing is
	// reported because that is too long ago.
	read      time.Time
	withdrawn bool
	// checked are the networks of the last check.
	checked map[string]ovn.Uplinks
}

func newBridges(
	networks func() (map[string]ovn.Uplinks, bool), vswitch ovn.Endpoint, report func(map[string]convert.Localnet),
) *bridges {
	b := &bridges{networks: networks, control: vswitchdSocket(vswitch), changed: make(chan struct{}, 1), report: report}
	b.dump = b.dumpFlows
	return b
}

func (b *bridges) run(ctx context.Context) {
	tick := time.NewTicker(flowCheckInterval)
	defer tick.Stop()
	var rest <-chan time.Time // nil if a change need not wait
	waits := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
			if waits = rest != nil && !b.hasOtherPorts(); waits {
				continue
			}
		case <-rest:
			if rest = nil; !waits {
				continue
			}
		case <-tick.C:
		}
		began := time.Now()
		b.check(ctx)
		rest, waits = time.After(max(minRest, restShare*time.Since(began))), false
	}
}

// hasOtherPorts reports whether OVN may have other ports than in the last check.
func (b *bridges) hasOtherPorts() bool {
	networks, known := b.networks()
	return !known || !maps.EqualFunc(networks, b.checked, func(now, was ovn.Uplinks) bool {
		return now.Bridge == was.Bridge && maps.Equal(now.Patches, was.Patches)
	})
}

// check reports the current state. While that can't be read, the last report remains valid for a limited time.
func (b *bridges) check(ctx context.Context) {
	networks, known := b.networks()
	b.checked = networks
	if !known {
		b.withdrawOld()
		return
	}
	found := map[string]convert.Localnet{}
	flows := map[string]map[netip.Addr]ports{}
	for _, uplinks := range networks {
		if len(uplinks.Patches) == 0 {
			continue
		}
		if flows[uplinks.Bridge] == nil {
			text, err := b.dump(ctx, uplinks.Bridge)
			if ctx.Err() != nil {
				return
			}
			if b.logReadError(uplinks.Bridge, err); err != nil {
				b.withdrawOld()
				return
			}
			flows[uplinks.Bridge] = requestFlows(text)
		}
		for localnet, number := range uplinks.Patches {
			found[localnet] = convert.Localnet{Bridge: uplinks.Bridge, Stale: staleAddrs(flows[uplinks.Bridge], number)}
		}
	}
	b.read, b.withdrawn = time.Now(), false
	for localnet, is := range found {
		is.Stale = is.Stale[:min(len(is.Stale), maxStaleAddrs/len(found))]
		found[localnet] = is
	}
	if b.reported != nil && maps.EqualFunc(found, b.reported, convert.Localnet.Equal) {
		return
	}
	for localnet, is := range found {
		if n := len(is.Stale); n > 0 {
			klog.InfoS("Found stale ARP flows on a bridge", "bridge", is.Bridge, "port", localnet,
				"addresses", n, "first", is.Stale[0])
		}
	}
	b.reported = found
	b.report(found)
}

// withdrawOld withdraws the last report, also that of a predecessor, if the state has been unreadable for too long.
func (b *bridges) withdrawOld() {
	if b.read.IsZero() {
		b.read = time.Now()
	}
	if !b.withdrawn && time.Since(b.read) > unreadableAfter {
		b.reported, b.withdrawn = nil, true
		b.report(nil)
	}
}

// logReadError logs that the flows of a bridge can't be read, once per reason.
func (b *bridges) logReadError(bridge string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != b.lastError {
		klog.ErrorS(err, "Failed to read the flows of a bridge", "bridge", bridge)
	}
	b.lastError = text
}

// dumpFlows requests the flows of a bridge from ovs-vswitchd.
func (b *bridges) dumpFlows(ctx context.Context, bridge string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	return unixctl.Command(ctx, b.control, "bridge/dump-flows", bridge)
}

func anyStale(found map[string]convert.Localnet) bool {
	for _, is := range found {
		if len(is.Stale) > 0 {
			return true
		}
	}
	return false
}

// ports are the OpenFlow ports that a flow outputs to: all of them, or those in numbers.
type ports struct {
	allPorts bool
	numbers  []int
}

// requestFlows parses the flows that match requests for a single address, by that address. The format is that of
// ovs-appctl(8) bridge/dump-flows, with fields as in ovs-fields(7) and actions as in ovs-actions(7).
func requestFlows(text string) map[netip.Addr]ports {
	flows := map[netip.Addr]ports{}
	for line := range strings.Lines(text) {
		match, actions, ok := strings.Cut(strings.TrimSpace(line), ",actions=")
		if !ok || strings.Contains(match, "table_id=") {
			continue
		}
		for field := range strings.SplitSeq(match, ",") {
			key, value, _ := strings.Cut(field, "=")
			if key = strings.TrimSpace(key); key != "arp_tpa" && key != "nd_target" {
				continue
			}
			if addr, err := netip.ParseAddr(value); err == nil {
				flows[addr] = outputs(actions)
			}
		}
	}
	return flows
}

func outputs(actions string) ports {
	var p ports
	for action := range strings.SplitSeq(actions, ",") {
		action = strings.TrimSpace(action)
		switch action {
		case "NORMAL", "FLOOD", "ALL":
			p.allPorts = true
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(action, "output:")); err == nil {
			p.numbers = append(p.numbers, n)
		}
	}
	return p
}

// staleAddrs returns the addresses whose requests do not reach a port, sorted.
func staleAddrs(flows map[netip.Addr]ports, number int) []netip.Addr {
	var stale []netip.Addr
	for addr, to := range flows {
		if !to.allPorts && !slices.Contains(to.numbers, number) {
			stale = append(stale, addr)
		}
	}
	slices.SortFunc(stale, netip.Addr.Compare)
	return stale
}
