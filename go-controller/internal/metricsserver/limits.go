// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// Reviews per second, and at once, for requests that were not allowed before: of one client and of all.
const (
	clientRate, clientBurst = 1, 20
	totalRate, totalBurst   = 10, 40

	maxClients = 1024
	// clientTimeout is longer than an empty bucket of a client needs to fill.
	clientTimeout = time.Minute
)

// limits are token buckets, per client and for all.
type limits struct {
	mu      sync.Mutex
	clients *cache.LRUExpireCache // of flowcontrol.PassiveRateLimiter, by client
	total   flowcontrol.PassiveRateLimiter
}

func newLimits() *limits {
	return &limits{clients: cache.NewLRUExpireCache(maxClients),
		total: flowcontrol.NewTokenBucketPassiveRateLimiter(totalRate, totalBurst)}
}

// allow reports whether one more review may be sent for a client.
func (l *limits) allow(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, found := l.clients.Get(client)
	if !found {
		own = flowcontrol.NewTokenBucketPassiveRateLimiter(clientRate, clientBurst)
	}
	l.clients.Add(client, own, clientTimeout)
	return own.(flowcontrol.PassiveRateLimiter).TryAccept() && l.total.TryAccept()
}

// clientOf is the address of a client without its port, for IPv6 its /64: a host has all of that to choose from.
func clientOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}
