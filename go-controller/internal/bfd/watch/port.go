// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"net/netip"
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
	// senders are those whose packets the receiver receives.
	senders []netip.Addr
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
	p.receiver, p.err, p.retry, p.senders = nil, nil, time.Time{}, nil
}

// from limits the senders whose packets are received to the peers of the sessions.
func (p *port) from(now time.Time, peers []netip.Addr) {
	slices.SortFunc(peers, netip.Addr.Compare)
	peers = slices.Compact(peers)
	if p.receiver == nil || slices.Equal(peers, p.senders) {
		return
	}
	if err := p.receiver.from(peers); err != nil {
		err = fmt.Errorf("receive BFD over %s on UDP port %d: %w", p.kind, p.kind.port(), err)
		p.close()
		p.err, p.retry = err, now.Add(retryEvery)
		return
	}
	p.senders = peers
}

// read passes on the received packets.
func (p *port) read(take func(datagram)) {
	if p.receiver != nil {
		p.receiver.read(take)
	}
}
