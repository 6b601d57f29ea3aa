// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// port receives the packets of all sessions of a kind.
type port struct {
	kind kind
	// receiver is nil while the port is not open. err is the reason, and retry is when it is opened again.
	receiver receiver
	err      error
	retry    time.Time
	// remotes are those whose packets the receiver receives.
	remotes []remote
}

func (p *port) open(n network) {
	r, err := n.listen(p.kind)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("another agent of ovnkube-slb on this node receives it: %w", err)
	}
	if err != nil {
		p.err = fmt.Errorf("receive BFD over %s on UDP port %d: %w", p.kind, p.kind.port(), err)
		return
	}
	p.receiver, p.err = r, nil
}

func (p *port) close() {
	if p.receiver != nil {
		p.receiver.close()
	}
	p.receiver, p.err, p.retry, p.remotes = nil, nil, time.Time{}, nil
}

// from limits the packets that are received to those that may count for a session.
func (p *port) from(now time.Time, remotes []remote) {
	slices.SortFunc(remotes, func(a, b remote) int {
		return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(a.discriminator, b.discriminator))
	})
	remotes = slices.Compact(remotes)
	if p.receiver == nil || slices.Equal(remotes, p.remotes) {
		return
	}
	if err := p.receiver.from(remotes); err != nil {
		err = fmt.Errorf("receive BFD over %s on UDP port %d: %w", p.kind, p.kind.port(), err)
		p.close()
		p.err, p.retry = err, now.Add(retryEvery)
		return
	}
	p.remotes = remotes
}

// read passes on the received packets.
func (p *port) read(take func(datagram)) {
	if p.receiver != nil {
		p.receiver.read(take)
	}
}
