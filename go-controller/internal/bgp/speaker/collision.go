// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// errCollision is the error of an attempt that was not made, because another BGP speaker of the node has a session
// between the same addresses, or wants one. Routers refuse a second one, or let it replace the first (RFC 4271 section
// 6.8; FRR does so if the first has graceful restart): both speakers would then replace each other's session again and
// again, or the other one would have none.
type errCollision struct {
	local, peer netip.Addr
	// wants means that the other speaker has no session, and tries to open one.
	wants bool
}

func (e errCollision) Error() string {
	does := "has a session"
	if e.wants {
		does = "tries to open a session"
	}
	return fmt.Sprintf("not dialed: another BGP speaker of this node (FRR of frr-k8s?) %s from %s to %s, and "+
		"a router has one with each address: let the two have different routers, or set sourceAddress to another address "+
		"of the node", does, e.local, e.peer)
}

const (
	// opens is the length of the shortest OPEN message (RFC 4271 section 4.2), in octets. A connection on which the router
	// has received less, as from a check of whether its port is open, was not that of a BGP speaker.
	opens = 29
	// givenWay is how long a router is not dialed after another speaker of the node has failed to open a session with it.
	// FRR tries again after 2 min by default.
	givenWay = 5 * time.Minute
)

// collision returns errCollision if another process of the network namespace has an established BGP connection between
// the addresses of a target. Otherwise it returns the cookies of other connections there that have not ended yet, for
// example of an earlier process of this program.
func collision(t target, known *sockets) (ending []uint64, err error) {
	local := source(t)
	if !local.IsValid() {
		return nil, nil
	}
	for _, s := range known.others(local, t) {
		if s.established {
			return nil, errCollision{local: local, peer: t.addr}
		}
		ending = append(ending, s.cookie)
	}
	return ending, nil
}

// otherConnectionEnded tells the peer that a connection of another process has ended.
func (p *peer) otherConnectionEnded(s socket) {
	if s.acked < opens {
		return
	}
	select {
	case p.others <- s:
		signal(p.wake)
	default: // one of those before has the same effect
	}
}

// yieldSession ends the session if another speaker of the node failed to open one between the same addresses: the
// router refuses it as long as it has ours. The other one may be FRR that was restarted, or whose path was lost.
func (p *peer) yieldSession(to target) {
	for {
		select {
		case s := <-p.others:
			if !p.collides(s, to) {
				continue
			}
			p.close("another BGP speaker of this node opens a session")
			p.retry = time.Now().Add(p.pace(to.neighbor))
			p.gaveWay = contention{zoned(s.local.Addr(), to.addr.Zone()), to.addr, time.Now()}
			p.recordLoss(dialReason(errCollision{p.gaveWay.local, to.addr, true}))
		default:
			return
		}
	}
}

// collides reports whether a connection of another process that has ended was one for the session of the peer.
func (p *peer) collides(s socket, to target) bool {
	if p.session == nil {
		local := source(to)
		return p.gaveWay.over(local, to) && s.connects(local, to)
	}
	return !slices.Contains(p.ending, s.cookie) && s.connects(p.session.observed().local, p.session.target)
}

// contention is an attempt of another speaker of the node to open a session between two addresses.
type contention struct {
	local, peer netip.Addr
	at          time.Time
}

// over reports whether the session from an address to a target is left to the other speaker.
func (c contention) over(local netip.Addr, to target) bool {
	return local.IsValid() && c.local == local && c.peer == to.addr && time.Since(c.at) < givenWay
}
