// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/unixctl"
)

const (
	// maxQueuedClaims is how many claims can wait for their announcement. A chassis that returns claims all shards of all
	// domains at once.
	maxQueuedClaims = 4096
	// flushTimeout limits a call of ovs-vswitchd.
	flushTimeout = time.Second
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
}

func (a *announcer) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	var name, remote string
	var shards *ovn.Claims
	stop := func() {}
	defer func() { stop() }()
	var pending []*pendingClaim
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
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
		running.Go(func() { _ = claims.Run(followed) }) // ends only with the context
	}
}

func (a *announcer) claimed(c ovn.Claim) {
	select {
	case a.claims <- c:
	default:
	}
}

// announce sends a gratuitous ARP and an unsolicited neighbour advertisement for the shard's router on each link of
// the bridge. It reports false if OVN has no port for the shard on a bridge yet. All addresses of a shard have the MAC
// address of its router, before and after the claim, so these frames are sufficient for switches to learn the new
// location. The node's own bridge is one of these switches and has learned that the shard is beyond the link, so its
// MAC table is flushed.
func (a *announcer) announce(ctx context.Context, c ovn.Claim) bool {
	networks, _ := a.networks()
	for _, network := range networks {
		if _, has := network.Patches[plan.LocalnetPort(c.Shard.Domain)]; !has {
			continue
		}
		if err := a.flush(ctx, network.Bridge); err != nil {
			klog.ErrorS(err, "Failed to flush the MAC table of a bridge", "bridge", network.Bridge, "shard", c.Shard)
		}
		for _, link := range network.Links {
			if err := send(link.Name, c); err != nil {
				klog.ErrorS(err, "Failed to announce a claimed shard", "shard", c.Shard, "link", link.Name)
				continue
			}
			a.metrics.announcements.Inc()
			klog.InfoS("Announced claimed shard", "shard", c.Shard, "link", link.Name, "mac", c.MAC, "vlan", c.VLAN)
		}
		return true
	}
	return false
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
