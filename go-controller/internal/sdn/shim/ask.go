// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// askPause is the time between two questions to a node about the same version, which it has not applied.
const askPause = 100 * time.Millisecond

// placed is where an address with a plan is to be.
type placed struct {
	node     string
	services []world.Key
}

// report is the latest answer of a node: the version that it is about, and the fingerprint of what has failed.
type report struct{ version, failed string }

// failedChanged has a node asked what it holds if its agent reports other failed addresses than in its latest answer.
// So it does while the node has not confirmed a release. It is called for each health check of an agent that is well,
// so that what is not answered is asked again.
func (d *Dataplane) failedChanged(node, fingerprint string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.askUnreleased(node)
	if last, ok := d.reports[node]; ok && last.failed != fingerprint && len(d.have[node]) > 0 {
		d.confirmations.ask(node, last.version, time.Now())
		d.ask()
	}
}

// ask starts to ask nodes whose answers are awaited. d.mu must be held.
func (d *Dataplane) ask() {
	if d.ctx == nil {
		return
	}
	for node, r := range d.confirmations {
		if _, _, awaited := r.next(); awaited && !r.asking {
			r.asking = true
			go d.follow(d.ctx, node)
		}
	}
}

// follow asks a node until no answer of it is awaited.
func (d *Dataplane) follow(ctx context.Context, node string) {
	var failed map[netip.Addr]string
	var err error
	before := "" // the version of the last question
	for {
		at, version, until := d.question(node)
		if version == "" {
			return
		}
		if version == before && (err != nil || len(failed) > 0) {
			select {
			case <-ctx.Done():
			case <-time.After(min(askPause, time.Until(until))):
			}
		}
		asked, cancel := context.WithDeadline(ctx, until)
		before = version
		last := err
		failed, err = d.prober.dial.acknowledges(asked, at, version)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errUnconfirmed) && last != nil {
			err = last // why there was no answer before
		}
		d.update(func() answers {
			out := d.confirmations.answered(node, version, d.have[node], failed, err, time.Now())
			if err == nil {
				d.reports[node] = report{version, revision.Fingerprint(failed)}
				out.changed = append(out.changed, d.releasedLate(node, version, failed)...)
			}
			return out
		})
	}
}

// question returns what to ask a node, and when the answer is due. The version is empty if there is nothing to ask.
func (d *Dataplane) question(node string) (at netip.AddrPort, version string, until time.Time) {
	lost := d.prober.losses()
	d.update(func() (out answers) {
		if why := d.unreachable(node, lost); why != nil {
			out = d.confirmations.unreachable(node, why)
		}
		r := d.confirmations.of(node)
		at = d.agents[node]
		version, until, r.asking = r.next()
		return out
	})
	return at, version, until
}

// unreachable returns why a node can't confirm anything, or nil. d.mu must be held.
func (d *Dataplane) unreachable(node string, lost map[string]string) error {
	if lost[node] != "" {
		return errors.New(lost[node])
	}
	if _, ok := d.agents[node]; !ok {
		return errors.New("no agent runs there")
	}
	return nil
}

// lose ends what is awaited of nodes that can't answer. d.mu must be held.
func (d *Dataplane) lose(lost map[string]string) (out answers) {
	for node := range d.confirmations {
		if why := d.unreachable(node, lost); why != nil {
			out.add(d.confirmations.unreachable(node, why))
		}
	}
	return out
}

// healthChanged is called when a gateway is lost or has returned.
func (d *Dataplane) healthChanged() {
	lost := d.prober.losses()
	d.update(func() answers { return d.lose(lost) })
	d.changed()
}

// update calls a function with the lock held, and passes on the answers that it returns.
func (d *Dataplane) update(record func() answers) {
	d.mu.Lock()
	confirmed, changed := d.concerned(record())
	d.activate()
	noLongerPending, again := d.servicesOf(confirmed), d.servicesOf(changed)
	d.mu.Unlock()
	if len(noLongerPending) > 0 {
		d.confirmed(noLongerPending)
	}
	if len(again) > 0 {
		d.repeat(again)
	}
}

// servicesOf returns the Services with addresses. d.mu must be held.
func (d *Dataplane) servicesOf(addrs []netip.Addr) []world.Key {
	var keys []world.Key
	for _, a := range addrs {
		keys = append(keys, d.placed[a].services...)
	}
	return keys
}

// request returns the oldest request that must be confirmed before a node has an address, or nil. One that has failed
// stays until it is confirmed: no status may claim in between that the address is announced. d.mu must be held.
func (d *Dataplane) request(node string, a netip.Addr) *request {
	if d.have.Has(node, a) {
		return d.confirmations.taken(node, a)
	}
	var oldest *request
	for other, r := range d.confirmations {
		q := r.byAddr[a]
		if q != nil && q.release && other != node && (oldest == nil || q.since.Before(oldest.since)) {
			oldest = q
		}
	}
	return oldest
}

// failure returns the error of a change. d.mu must be held.
func (d *Dataplane) failure(failed *failures, c dataplane.Change) error {
	if err := failed.of(c, d.have); err != nil || c.Want == nil {
		return err
	}
	for _, v := range c.Want.VIPs {
		node := d.placed[v.Addr].node
		if q := d.confirmations.taken(node, v.Addr); q != nil && q.err != nil {
			return fmt.Errorf("address %s on node %s: %w", v.Addr, node, q.err)
		}
	}
	return nil
}
