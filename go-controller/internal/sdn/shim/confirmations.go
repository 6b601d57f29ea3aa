// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// handoverTime is how long a gateway may take to give up or to take addresses.
const handoverTime = 2 * time.Second

var errUnconfirmed = fmt.Errorf("its agent does not confirm it in time (%s)", handoverTime)

// request is one change of a node's annotation that its agent has not confirmed.
type request struct {
	// release is true if the node was instructed to remove the address, and false if it was instructed to add it. A
	// release that is not awaited any more remains until another node takes the address. assigned is true if it is one of
	// an address that we had assigned to the node.
	release, assigned bool
	// version is the version of the Node with the change, and since is when it was written.
	version string
	since   time.Time
	// until is when the answer is due, the zero time if none is awaited.
	until time.Time
	// err is why the node does not hold the address, nil before the first answer.
	err error
}

func (r *request) awaited() bool { return !r.until.IsZero() }

// requests are those of one node.
type requests struct {
	byAddr map[netip.Addr]*request
	// held asks what the node holds of a version that it has confirmed, nil for nothing.
	held *request
	// asking is true while a goroutine asks the agent.
	asking bool
}

// next returns the newest version with an awaited request, and when the first answer is due. It returns false if no
// answer is awaited.
func (r *requests) next() (version string, until time.Time, ok bool) {
	if q := r.held; q != nil {
		version, until, ok = q.version, q.until, true
	}
	for _, q := range r.byAddr {
		if !q.awaited() {
			continue
		}
		if !ok || revision.Newer(q.version, version) {
			version = q.version
		}
		if !ok || q.until.Before(until) {
			until = q.until
		}
		ok = true
	}
	return version, until, ok
}

// at is an address of a node.
type at struct {
	node string
	addr netip.Addr
}

// release is the end of the wait for the release of an address. assigned is true if we had assigned it to the node.
type release struct {
	at
	assigned bool
	// unconfirmed is the version of the Node with the release if the node has not confirmed it, otherwise empty.
	unconfirmed string
}

// answers are the addresses about which something is known that was not before.
type answers struct {
	// confirmed are those that a node holds now. changed are those with another result. released are those that another
	// node need not wait for.
	confirmed, changed []at
	released           []release
}

func (a *answers) add(other answers) {
	a.confirmed = append(a.confirmed, other.confirmed...)
	a.changed = append(a.changed, other.changed...)
	a.released = append(a.released, other.released...)
}

// fail records why a node does not hold an address.
func (a *answers) fail(at at, q *request, why error) {
	if q.err == nil {
		a.changed = append(a.changed, at)
	}
	q.err, q.until = why, time.Time{}
}

// release records that a release is not awaited any more.
func (a *answers) release(at at, q *request, confirmed bool) {
	r := release{at: at, assigned: q.assigned}
	if !confirmed {
		r.unconfirmed = q.version
	}
	a.released = append(a.released, r)
	q.until = time.Time{}
}

// confirmations has what nodes have not confirmed yet, by node. It has no side effects.
type confirmations map[string]*requests

func (c confirmations) of(node string) *requests {
	if c[node] == nil {
		c[node] = &requests{byAddr: map[netip.Addr]*request{}}
	}
	return c[node]
}

// written records a step that was written in a version of the Node, which had the addresses in assigned from us.
func (c confirmations) written(s sdn.Step, version string, assigned map[netip.Addr]world.Held, now time.Time) {
	record := func(addrs []netip.Addr, release bool) {
		for _, a := range addrs {
			_, ours := assigned[a]
			c.of(s.Node).byAddr[a] = &request{release: release, assigned: release && ours, version: version, since: now,
				until: now.Add(handoverTime)}
		}
	}
	record(s.Removed, true)
	record(s.New, false)
}

// again has a node asked again whether it holds an address that it did not hold at last.
func (c confirmations) again(node string, a netip.Addr, now time.Time) {
	if q := c.taken(node, a); q != nil && !q.awaited() {
		q.until = now.Add(handoverTime)
	}
}

// ask has a node asked what it holds of a version that it has confirmed, unless an answer of it is awaited anyway.
func (c confirmations) ask(node, version string, now time.Time) {
	r := c.of(node)
	if _, _, awaited := r.next(); !awaited {
		r.held = &request{version: version, since: now, until: now.Add(handoverTime)}
	}
}

// taken returns the request that a node hold an address, or nil.
func (c confirmations) taken(node string, a netip.Addr) *request {
	if r := c[node]; r != nil {
		if q := r.byAddr[a]; q != nil && !q.release {
			return q
		}
	}
	return nil
}

// answered records the answer of a node about a version, with the addresses that have failed, or the error instead of
// an answer. Requests whose time is up end with it. A gateway that is alive but does not apply its assignment must not
// keep addresses indefinitely. Addresses in has that the node had confirmed may have failed since.
func (c confirmations) answered(
	node, version string, has map[netip.Addr]world.Held, failed map[netip.Addr]string, err error, now time.Time,
) (out answers) {
	r := c.of(node)
	late := func(q *request) bool { return q.awaited() && !now.Before(q.until) }
	applied := func(q *request) bool { return err == nil && !revision.Newer(q.version, version) }
	if r.held != nil && (late(r.held) || applied(r.held)) {
		r.held = nil
	}
	for a := range failed {
		if _, ok := has[a]; ok && r.byAddr[a] == nil {
			r.byAddr[a] = &request{version: version, since: now}
		}
	}
	for a, q := range r.byAddr {
		at := at{node, a}
		switch {
		case q.release:
			if confirmed := applied(q) && failed[a] == ""; late(q) || q.awaited() && confirmed {
				out.release(at, q, confirmed)
			}
		case applied(q) && failed[a] != "":
			out.fail(at, q, errors.New(failed[a]))
		case applied(q) && q.err != nil:
			delete(r.byAddr, a)
			out.changed = append(out.changed, at)
		case applied(q):
			delete(r.byAddr, a)
			out.confirmed = append(out.confirmed, at)
		case late(q):
			out.fail(at, q, cmp.Or(err, errUnconfirmed))
		}
	}
	return out
}

// unreachable records that a node can't answer.
func (c confirmations) unreachable(node string, why error) (out answers) {
	r := c.of(node)
	r.held = nil
	for a, q := range r.byAddr {
		switch at := (at{node, a}); {
		case !q.release:
			out.fail(at, q, why)
		case q.awaited():
			out.release(at, q, false)
		}
	}
	return out
}

// forget drops what needs no answer: releases that are not awaited and that no other node has to follow, and addresses
// that are not assigned to their node.
func (c confirmations) forget(have sdn.Table, want map[netip.Addr]placed) {
	for node, r := range c {
		maps.DeleteFunc(r.byAddr, func(a netip.Addr, q *request) bool {
			if !q.release {
				return !have.Has(node, a)
			}
			next := want[a].node
			return !q.awaited() && (next == "" || next == node || have.Has(next, a))
		})
		if len(r.byAddr) == 0 && !r.asking {
			delete(c, node)
		}
	}
}

// unconfirmed returns the addresses that nodes have not confirmed.
func (c confirmations) unconfirmed(have sdn.Table) sdn.Table {
	out := sdn.Table{}
	for node, r := range c {
		for a, q := range r.byAddr {
			if h, ok := have[node][a]; ok && !q.release {
				out.Add(node, h)
			}
		}
	}
	return out
}
