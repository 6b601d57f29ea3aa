// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

// askEvery is the time between two questions who has an address.
const askEvery = 50 * time.Millisecond

// Sightings are the MACs that answered for each address, one after the other: one that comes twice answered again after another had.
type Sightings map[netip.Addr][]string

// lastAnswer is for the answers to what is asked at the end, which come at once on a machine that is not busy.
const lastAnswer = 5 * time.Second

// hearing is what was heard.
type hearing struct {
	mu     sync.Mutex
	seen   Sightings
	silent map[netip.Addr]bool // not answered for since anew
}

// anew begins to wait for an answer for each address.
func (h *hearing) anew(addrs []netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = map[netip.Addr]bool{}
	for _, a := range addrs {
		h.silent[a] = true
	}
}

// all tells whether each has been answered for since.
func (h *hearing) all() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.silent) == 0
}

func (h *hearing) note(a netip.Addr, mac string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	macs, asked := h.seen[a]
	if asked && (len(macs) == 0 || macs[len(macs)-1] != mac) {
		h.seen[a] = append(macs, mac)
	}
	delete(h.silent, a)
}

// watch asks on a device who has addresses until the context ends, and then until each is answered for once more: who has one now is seen.
// answered is called when each has been answered for.
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
			answer, err := port.Hear()
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
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswer)
	defer cancel()
	if err := errors.Join(ask(last, h.all), port.Close()); err != nil {
		return nil, err
	}
	listening.Wait()
	return h.seen, nil
}
