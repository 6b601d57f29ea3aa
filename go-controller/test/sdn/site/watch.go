// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

// askEvery is the interval between probes for an address.
const askEvery = 50 * time.Millisecond

// Sightings are the distinct MAC addresses that answered for each address, in the order of their first answers.
type Sightings map[netip.Addr][]string

// hearing records the answers.
type hearing struct {
	mu     sync.Mutex
	seen   Sightings
	silent map[netip.Addr]bool // addresses without an answer since the last call of anew
}

// anew starts to wait for a new answer for each address.
func (h *hearing) anew(addrs []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = map[netip.Addr]bool{}
	for _, a := range addrs {
		h.silent[a] = true
	}
}

// all reports whether every address has been answered for since then.
func (h *hearing) all() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.silent) == 0
}

func (h *hearing) note(a netip.Addr, mac string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	macs, asked := h.seen[a]
	if asked && !slices.Contains(macs, mac) {
		h.seen[a] = append(macs, mac)
	}
	delete(h.silent, a)
}

// watch probes for addresses on a device until the context ends, and then until each address is answered for once
// more, to determine the current holders. It calls answered once each address has been answered for.
func watch(ctx context.Context, device string, addrs []netip.Addr, answered func()) (Sightings, error) {
	port, err := neighbour.Open(device)
	if err != nil {
		return nil, err
	}
	h := &hearing{seen: Sightings{}}
	for _, a := range addrs {
		h.seen[a] = nil
	}
	h.anew(addrs)
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			answer, err := port.Receive()
			if err != nil {
				return
			}
			h.note(answer.Addr, answer.MAC)
		}
	})
	ask := func(ctx context.Context, enough func() bool) error {
		tick := time.NewTicker(askEvery)
		defer tick.Stop()
		for ctx.Err() == nil && !enough() {
			for _, a := range addrs {
				if err := port.Ask(a, 0); err != nil {
					return err
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		return nil
	}
	if err := ask(ctx, h.all); err != nil {
		return nil, err
	}
	answered()
	if err := ask(ctx, func() bool { return false }); err != nil {
		return nil, err
	}
	h.anew(addrs)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := errors.Join(ask(last, h.all), port.Close()); err != nil {
		return nil, err
	}
	listening.Wait()
	return h.seen, nil
}
