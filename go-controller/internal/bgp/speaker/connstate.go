// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net/netip"
	"time"
)

// connState is the observed state of a session.
type connState struct {
	phase Phase
	since time.Time
	// closed means that the connection is closed. lasted is how long the session was Established, 0 if it never was.
	closed bool
	lasted time.Duration
	asn    uint32
	local  netip.Addr
	// families are those negotiated by the OPENs, from the phase OpenConfirm on.
	families Families
	// keepaliveSent means that our first KEEPALIVE was sent.
	keepaliveSent bool
	// why is the first known reason why the session ended or ends.
	why           reason
	notifications notifications
}

// notifications are the numbers of NOTIFICATIONs that were sent to a router and received from it.
type notifications struct{ sent, received uint64 }

func (n *notifications) add(more notifications) {
	n.sent += more.sent
	n.received += more.received
}
