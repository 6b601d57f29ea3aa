// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// ends is why the node shall carry nothing when its agent is about to end.
const ends = "its agent ends"

const eventUnreadable = v1alpha1.EventVIPsUnreadable

// obeyer makes the kernel hold what the node is told. It is used from one goroutine.
type obeyer struct {
	// told: the Node was read. want are the addresses to hold, by address, of its version.
	told    bool
	want    map[netip.Addr]world.Held
	version string
	// address is the node's first internal one.
	address string
	// ending: the agent shall end.
	ending bool
	// found are the addresses of ours that the kernel had at the start, and on which interface. They are kept until the
	// Node is read.
	found   map[netip.Addr]string
	metrics *metrics

	links []*link
	// down are the interfaces that were without a carrier when they were looked at last.
	down map[string]bool
	// failed says why an address is not held.
	failed map[netip.Addr]string
	claims claims
	// claimed are the generations of the addresses that the segment was told of.
	claimed map[netip.Addr]uint64
}

func newObeyer(m *metrics) *obeyer {
	return &obeyer{claims: claims{}, claimed: map[netip.Addr]uint64{}, metrics: m}
}

// find takes note of what an agent before this one left in the kernel.
func (o *obeyer) find() error {
	if _, err := o.look(); err != nil {
		return err
	}
	o.found = map[netip.Addr]string{}
	for _, l := range o.links {
		for a := range l.ours {
			o.found[a] = l.name
		}
	}
	return nil
}

// keep renews what was found, before the Node is read: the kernel is all there is to know what it says. What an interface
// lost, by its carrier or otherwise, does not come back before.
func (o *obeyer) keep() {
	for _, l := range o.links {
		for a := range l.ours {
			if o.found[a] != l.name {
				continue
			}
			if !l.usable {
				o.remove(l, a)
			} else if err := o.add(l, a); err != nil {
				klog.ErrorS(err, "An address is not renewed", "address", a)
			}
		}
	}
}

// lacks is an address that was found and is not held any more; false if all are.
func (o *obeyer) lacks() (netip.Addr, bool) {
	held := map[netip.Addr]bool{}
	for _, l := range o.links {
		for a := range l.ours {
			held[a] = l.usable
		}
	}
	for a := range o.found {
		if !held[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// add has the kernel hold an address, for another lifetime.
func (o *obeyer) add(l *link, a netip.Addr) error {
	err := l.hold(a)
	if err != nil {
		o.metrics.failed(operationAdd)
		return err
	}
	l.ours[a] = true
	return nil
}

// remove has the kernel give an address up.
func (o *obeyer) remove(l *link, a netip.Addr) {
	if err := l.drop(a); err != nil {
		o.metrics.failed(operationRemove)
		o.fail(a, err.Error())
		return
	}
	klog.InfoS("Address given up", "address", a, "interface", l.name)
	delete(l.ours, a)
	delete(o.claims, a)
	delete(o.claimed, a)
}

// read adopts the annotation of a Node; one that can't be read changes nothing.
func (o *obeyer) read(n *corev1.Node) error {
	held, err := sdn.Parse(n.Annotations[v1alpha1.AnnotationVIPs])
	if err != nil {
		return fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationVIPs, err)
	}
	o.tell(held, n.ResourceVersion)
	return nil
}

func (o *obeyer) tell(held []world.Held, version string) {
	want := make(map[netip.Addr]world.Held, len(held))
	for _, h := range held {
		want[h.Addr] = h
	}
	o.told, o.want, o.version = true, want, version
}

// look reads the kernel's interfaces. It tells whether one on which something is to be held has got
// its carrier back: what the node shall hold may be otherwise since.
func (o *obeyer) look() (returned bool, err error) {
	links, err := look()
	if err != nil {
		o.metrics.failed(operationRead)
		return false, err
	}
	wanted := map[string]bool{}
	for _, h := range o.want {
		wanted[h.Interface] = true
	}
	down := map[string]bool{}
	for _, l := range links {
		if !l.usable {
			down[l.name] = true
		} else if o.down[l.name] && wanted[l.name] {
			returned = true
		}
	}
	o.links, o.down = links, down
	return returned, nil
}

// apply makes the kernel as it shall be: what is to go goes first. With renew the lives of all
// addresses begin anew. Without a carrier nothing is held: who comes back to the segment must not
// answer for what another has taken.
func (o *obeyer) apply(renew bool) {
	o.failed = map[netip.Addr]string{}
	byName := make(map[string]*link, len(o.links))
	for _, l := range o.links {
		byName[l.name] = l
		o.release(l)
	}
	for _, a := range slices.SortedFunc(maps.Keys(o.want), netip.Addr.Compare) {
		h := o.want[a]
		l := byName[h.Interface]
		if l == nil {
			o.fail(a, fmt.Sprintf("interface %q does not exist", h.Interface))
			continue
		}
		if !l.usable {
			o.fail(a, fmt.Sprintf("interface %s has no carrier", l.name))
			continue
		}
		if l.foreign(a) {
			o.fail(a, fmt.Sprintf("interface %s has %s, and not from here", l.name, a))
			continue
		}
		if l.ours[a] && !renew {
			o.claim(h)
			continue
		}
		had := l.ours[a]
		if err := o.add(l, a); err != nil {
			o.fail(a, err.Error())
			continue
		}
		if !had {
			klog.InfoS("Address taken", "address", a, "interface", l.name, "service", h.Service.String())
			delete(o.claimed, a)
		}
		o.claim(h)
	}
	for a := range o.claimed {
		if _, held := o.want[a]; !held {
			delete(o.claimed, a)
		}
	}
}

// release removes from a link what is not to be held there.
func (o *obeyer) release(l *link) {
	for a := range l.ours {
		if h, stays := o.want[a]; stays && h.Interface == l.name && l.usable {
			continue
		}
		o.remove(l, a)
	}
}

func (o *obeyer) fail(a netip.Addr, why string) {
	if o.failed == nil {
		o.failed = map[netip.Addr]string{}
	}
	o.failed[a] = why
}

// count returns how many addresses of ours the kernel has.
func (o *obeyer) count() int {
	n := 0
	for _, l := range o.links {
		n += len(l.ours)
	}
	return n
}

// foreign tells whether the node has an address of its own that it is told to hold.
func (l *link) foreign(a netip.Addr) bool {
	return slices.ContainsFunc(l.own, func(p netip.Prefix) bool { return p.Addr() == a })
}

// claim begins to tell the segment of an address that came or moved here.
func (o *obeyer) claim(h world.Held) {
	if generation, done := o.claimed[h.Addr]; !done || generation != h.Generation {
		o.claimed[h.Addr] = h.Generation
		o.claims.start(h.Addr, h.Interface, time.Now())
	}
}

// unfit says why the node shall carry nothing, empty if it may.
func (o *obeyer) unfit() string {
	if o.ending {
		return ends
	}
	if a, lacks := o.lacks(); lacks && !o.told {
		return fmt.Sprintf("its agent cannot read the Node, and the node does not hold %s any more", a)
	}
	for _, h := range o.want {
		if o.down[h.Interface] {
			return fmt.Sprintf("interface %s has no carrier", h.Interface)
		}
	}
	return ""
}

// interfaces are those by which the node may be attached to a segment.
func (o *obeyer) interfaces() map[string][]netip.Prefix {
	out := map[string][]netip.Prefix{}
	for _, l := range o.links {
		if l.usable && len(l.own) > 0 {
			out[l.name] = l.own
		}
	}
	return out
}

// clear removes all addresses of ours.
func (o *obeyer) clear() error {
	links, err := look()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range links {
		for a := range l.ours {
			errs = append(errs, l.drop(a))
		}
	}
	return errors.Join(errs...)
}
