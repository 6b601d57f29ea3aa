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
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// askEvery is the interval between probes for an address.
const askEvery = 50 * time.Millisecond

// Sightings are the distinct MAC addresses that answered for each address, in the order of their first answers.
type Sightings map[netip.Addr][]string

// hearing records the answers.
type hearing struct {
	mu   sync.Mutex
	seen Sightings
	// present are the MAC addresses that answered last in the end, to which no older answer belongs.
	present map[netip.Addr]string
}

// all reports whether every address has been answered for.
func (h *hearing) all() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, macs := range h.seen {
		if len(macs) == 0 {
			return false
		}
	}
	return true
}

// complete reports whether the present holder of every address has been seen.
func (h *hearing) complete() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, macs := range h.seen {
		if mac, known := h.present[a]; !known || !slices.Contains(macs, mac) {
			return false
		}
	}
	return true
}

func (h *hearing) note(a netip.Addr, mac string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	macs, asked := h.seen[a]
	if asked && !slices.Contains(macs, mac) {
		h.seen[a] = append(macs, mac)
	}
}

func (h *hearing) notePresent(a netip.Addr, mac string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.present[a] = mac
}

// watch probes for addresses on a device until the context ends, and then until the present holder of each address is
// seen. It calls answered once each address has been answered for.
func watch(ctx context.Context, device string, addrs []netip.Addr, answered func()) (Sightings, error) {
	port, err := neighbour.Open(device)
	if err != nil {
		return nil, err
	}
	h := &hearing{seen: Sightings{}, present: map[netip.Addr]string{}}
	for _, a := range addrs {
		h.seen[a] = nil
	}
	var listening sync.WaitGroup
	listen := func(port *neighbour.Port, note func(netip.Addr, string)) {
		listening.Go(func() {
			for {
				answer, ok, err := port.Receive()
				if err != nil {
					return
				}
				if ok {
					note(answer.Addr, answer.MAC)
				}
			}
		})
	}
	listen(port, h.note)
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
	// On a busy machine, older answers may wait to be read. The new port has none of them.
	last, err := neighbour.Open(device)
	if err != nil {
		return nil, err
	}
	listen(last, h.notePresent)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), poll.Limit)
	defer cancel()
	if err := errors.Join(ask(ctx, h.complete), port.Close(), last.Close()); err != nil {
		return nil, err
	}
	listening.Wait()
	return h.seen, nil
}
