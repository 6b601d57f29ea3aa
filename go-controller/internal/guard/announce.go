// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

const (
	// maxQueuedClaims is how many claims can wait for their announcement. A chassis that returns claims all shards of all
	// domains at once.
	maxQueuedClaims = 4096
	// flushTimeout limits a call of ovs-vswitchd, and addressesTimeout a query of the southbound database.
	flushTimeout     = time.Second
	addressesTimeout = 10 * time.Second
	// announceTimeout is how long an announcement waits for OVN's port on the bridge. After that OVN announces the shard
	// itself.
	announceTimeout = time.Second
	// announcements is how often a claim is announced, and announceInterval the time after the first announcement; each
	// further one doubles it. In a planned move the previous gateway may still send replies with the MAC address of the
	// shard after the first announcement, and a frame may be lost.
	announcements    = 3
	announceInterval = 50 * time.Millisecond
)

// pendingClaim is a claim with announcements left.
type pendingClaim struct {
	ovn.Claim
	// next is when the next announcement is due. Until the first one was sent, each change on the bridges is an attempt,
	// until the time until.
	next, until time.Time
	sent        int
}

// advance sends the next announcement if it is due, and reports whether the claim has none left.
func (c *pendingClaim) advance(now time.Time, announce func(ovn.Claim) bool) bool {
	switch {
	case c.sent == 0 && !now.Before(c.until):
		return true
	case now.Before(c.next):
		return false
	case !announce(c.Claim):
		return c.sent > 0
	}
	c.next = now.Add(announceInterval << c.sent)
	c.sent++
	return c.sent == announcements
}

// nextAnnouncement returns when the next announcement is due, and false if none has a time: claims that were not
// announced yet wait for OVN's port on the bridge.
func nextAnnouncement(pending []*pendingClaim) (time.Time, bool) {
	var next time.Time
	for _, c := range pending {
		if c.sent > 0 && (next.IsZero() || c.next.Before(next)) {
			next = c.next
		}
	}
	return next, !next.IsZero()
}

// repeatCheck is how often held shards are looked up for announcements that are to be repeated, minRepeat the minimum
// time between two of a shard, whatever the database says.
const repeatCheck, minRepeat = 2 * time.Second, 10 * time.Second

// repeats are the times at which the announcements of held shards are due again, by shard.
type repeats map[world.ShardID]time.Time

// due returns the held shards whose announcement is due. Those that are new in held were announced when they were
// claimed; their first repetitions are spread over the interval, and so are all that follow.
func (r repeats) due(held []ovn.Claim, now time.Time) []ovn.Claim {
	var out []ovn.Claim
	keeps := map[world.ShardID]bool{}
	for i, c := range held {
		if c.Repeat <= 0 {
			continue
		}
		keeps[c.Shard] = true
		every := max(c.Repeat, minRepeat)
		next, known := r[c.Shard]
		switch {
		case !known || next.After(now.Add(every)):
			r[c.Shard] = now.Add(every * time.Duration(i+1) / time.Duration(len(held)))
		case !now.Before(next):
			out = append(out, c)
			r[c.Shard] = now.Add(every)
		}
	}
	maps.DeleteFunc(r, func(s world.ShardID, _ time.Time) bool { return !keeps[s] })
	return out
}

// announcer updates the switches of a segment as soon as this node has claimed a shard. OVN announces the shard
// itself, but one second after the claim (announce_time in controller/pinctrl.c). OVN also sends a BFD packet at
// once, but that packet may precede the completion of its flows and be lost.
type announcer struct {
	chassis  func() (name, remote string)
	networks func() (map[string]ovn.Uplinks, bool)
	// credentials are those of the southbound database, without its address.
	credentials ovn.Endpoint
	// control is the pattern of ovs-vswitchd's control socket (ovs-appctl(8)).
	control string
	metrics *metrics
	changed chan struct{}
	claims  chan ovn.Claim
	repeats repeats
	// shards are those that the chassis claims, nil until its southbound database is known.
	shards atomic.Pointer[ovn.Claims]
}

func (a *announcer) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	var name, remote string
	var shards *ovn.Claims
	stop := func() {}
	defer func() { stop() }()
	var pending []*pendingClaim
	timer, repeat := time.NewTimer(0), time.NewTicker(repeatCheck)
	defer timer.Stop()
	defer repeat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-repeat.C:
			if shards == nil {
				continue
			}
			for _, claim := range a.repeats.due(shards.Held(), now) {
				if on, ok := a.networkOf(claim); ok {
					a.send(on, claim)
				}
			}
			continue
		case claim := <-a.claims:
			pending = slices.DeleteFunc(pending, func(c *pendingClaim) bool { return c.Shard == claim.Shard })
			pending = append(pending, &pendingClaim{Claim: claim, until: time.Now().Add(announceTimeout)})
		case <-a.changed:
		case <-timer.C:
		}
		pending = slices.DeleteFunc(pending, func(c *pendingClaim) bool {
			return !shards.Holds(c.Shard) ||
				c.advance(time.Now(), func(claim ovn.Claim) bool { return a.announce(ctx, claim) })
		})
		if next, ok := nextAnnouncement(pending); ok {
			timer.Reset(time.Until(next))
		}
		newName, newRemote := a.chassis()
		if newName == "" || newRemote == "" || newName == name && newRemote == remote {
			continue
		}
		name, remote = newName, newRemote
		stop()
		followed, cancel := context.WithCancel(ctx)
		stop = cancel
		endpoint := a.credentials
		endpoint.Address = remote
		claims, err := ovn.NewClaims(endpoint, name, a.claimed)
		if err != nil {
			klog.ErrorS(err, "Failed to watch claims, OVN announces shards itself")
			continue
		}
		shards = claims
		a.shards.Store(claims)
		running.Go(func() { _ = claims.Run(followed) }) // ends only with the context
	}
}

func (a *announcer) claimed(c ovn.Claim) {
	select {
	case a.claims <- c:
	default:
	}
}

// announce sends a gratuitous ARP and an unsolicited neighbour advertisement for the router of a claimed shard on each
// link of the bridge. It reports false if OVN has no port for the shard on a bridge yet. All addresses of a shard have
// the MAC address of its router, before and after the claim, so these frames are sufficient for switches to learn the
// new location. The node's own bridge is one of these switches and has learned that the shard is beyond the link, so
// its MAC table is flushed.
func (a *announcer) announce(ctx context.Context, c ovn.Claim) bool {
	on, ok := a.networkOf(c)
	if !ok {
		return false
	}
	if err := a.flush(ctx, on.Bridge); err != nil {
		klog.ErrorS(err, "Failed to flush the MAC table of a bridge", "bridge", on.Bridge, "shard", c.Shard)
	}
	a.send(on, c)
	klog.InfoS("Announced claimed shard", "shard", c.Shard, "bridge", on.Bridge, "mac", c.MAC, "vlan", c.VLAN)
	return true
}

// networkOf returns the network on whose bridge OVN has a port for a shard, and false if there is none.
func (a *announcer) networkOf(c ovn.Claim) (ovn.Uplinks, bool) {
	networks, _ := a.networks()
	name, ok := networkWith(networks, c.Shard.Domain)
	return networks[name], ok
}

// networkWith returns the name of the network on whose bridge OVN has a port for an L2Domain.
func networkWith(networks map[string]ovn.Uplinks, domain string) (string, bool) {
	for name, network := range networks {
		if _, has := network.Patches[plan.LocalnetPort(domain)]; has {
			return name, true
		}
	}
	return "", false
}

// addresses returns the addresses that this node announces.
func (a *announcer) addresses(ctx context.Context) (map[netip.Addr]announcedAddress, error) {
	shards := a.shards.Load()
	networks, known := a.networks()
	if shards == nil || !known {
		return nil, errors.New("the databases of the chassis are not known")
	}
	ctx, cancel := context.WithTimeout(ctx, addressesTimeout)
	defer cancel()
	vips, err := shards.VIPs(ctx)
	if err != nil {
		return nil, fmt.Errorf("announced addresses: %w", err)
	}
	out := make(map[netip.Addr]announcedAddress, len(vips))
	for addr, claim := range vips {
		if network, ok := networkWith(networks, claim.Shard.Domain); ok {
			out[addr] = announcedAddress{mac: claim.MAC.String(), network: network, vlan: claim.VLAN}
		}
	}
	return out, nil
}

// send sends one announcement on each link.
func (a *announcer) send(on ovn.Uplinks, c ovn.Claim) {
	for _, link := range on.Links {
		if err := send(link.Name, c); err != nil {
			klog.ErrorS(err, "Failed to announce a shard", "shard", c.Shard, "link", link.Name)
			continue
		}
		a.metrics.announcements.Inc()
	}
}

func (a *announcer) flush(ctx context.Context, bridge string) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	_, err := unixctl.Command(ctx, a.control, "fdb/flush", bridge)
	return err
}

func send(link string, c ovn.Claim) error {
	port, err := neighbour.Open(link)
	if err != nil {
		return err
	}
	defer port.Close()
	for _, addr := range c.Addrs {
		if err := port.ClaimFor([6]byte(c.MAC), addr, c.VLAN); err != nil {
			return err
		}
	}
	return nil
}

// vswitchdSocket returns the pattern of the control socket of the ovs-vswitchd that serves the database at an
// endpoint.
func vswitchdSocket(vswitch ovn.Endpoint) string {
	dir := "/var/run/openvswitch"
	if socket, ok := strings.CutPrefix(vswitch.Address, "unix:"); ok {
		dir = filepath.Dir(socket)
	}
	return filepath.Join(dir, "ovs-vswitchd.*.ctl")
}
