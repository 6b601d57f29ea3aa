// SPDX-License-Identifier: Apache-2.0

package metricsserver

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// Rates (reviews per second) and bursts for requests that were not allowed before, per client and in total.
const (
	clientRate, clientBurst = 1, 20
	totalRate, totalBurst   = 10, 40

	maxClients = 1024
	// clientTimeout is longer than the time to refill an empty bucket of a client.
	clientTimeout = time.Minute
)

// limits holds the token buckets, one per client and one in total.
type limits struct {
	mu      sync.Mutex
	clients *cache.LRUExpireCache // of flowcontrol.PassiveRateLimiter, by client
	total   flowcontrol.PassiveRateLimiter
}

func newLimits() *limits {
	return &limits{clients: cache.NewLRUExpireCache(maxClients),
		total: flowcontrol.NewTokenBucketPassiveRateLimiter(totalRate, totalBurst)}
}

// allow reports whether one more review may be sent for client.
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

// clientOf returns the address of a client without its port. For IPv6 it returns the /64, because a host can use any
// address in it.
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
