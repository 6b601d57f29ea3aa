// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
)

// askEvery is the time between two questions who has an address.
const askEvery = 50 * time.Millisecond

// Sightings are the MACs that answered for each address, one after the other: one that comes twice answered again after another had.
type Sightings map[netip.Addr][]string

// watch asks on a device who has addresses until the context ends.
func watch(ctx context.Context, device string, addrs []netip.Addr) (Sightings, error) {
	port, err := neighbour.Open(device)
	if err != nil {
		return nil, err
	}
	seen := Sightings{}
	for _, a := range addrs {
		seen[a] = nil
	}
	var hearing sync.WaitGroup
	hearing.Go(func() {
		for {
			answer, err := port.Hear()
			if err != nil {
				return
			}
			macs, asked := seen[answer.Addr]
			if asked && (len(macs) == 0 || macs[len(macs)-1] != answer.MAC) {
				seen[answer.Addr] = append(macs, answer.MAC)
			}
		}
	})
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, a := range addrs {
			if err := port.Ask(a, 0); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	if err := port.Close(); err != nil {
		return nil, err
	}
	hearing.Wait()
	return seen, nil
}
