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

// ends is the reason why the node must not hold addresses while its agent terminates.
const ends = "its agent ends"

const eventUnreadable = v1alpha1.EventVIPsUnreadable

// reconciler makes the addresses in the kernel match the Node's annotation. It must be used from one goroutine.
type reconciler struct {
	// known is true once the Node has been read. want are the addresses to hold, by address, and version is the Node's
	// version.
	known   bool
	want    map[netip.Addr]world.Held
	version string
	// address is the node's first internal address.
	address string
	// ending is true while the agent terminates.
	ending bool
	// found maps our addresses that the kernel had at the start to their interfaces. They are kept until the Node has
	// been read.
	found   map[netip.Addr]string
	metrics *metrics

	links []*link
	// down are the interfaces that had no carrier when they were last read.
	down map[string]bool
	// failed contains the reasons why addresses are not held.
	failed map[netip.Addr]string
	claims claims
	// claimed are the generations of the addresses that were announced on the segment.
	claimed map[netip.Addr]uint64
}

func newReconciler(m *metrics) *reconciler {
	return &reconciler{claims: claims{}, claimed: map[netip.Addr]uint64{}, metrics: m}
}

// find records the addresses that a previous agent left in the kernel.
func (o *reconciler) find() error {
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

// keep renews the addresses found at the start. Before the Node has been read, the kernel is the only source for its
// contents. An address that an interface has lost, with its carrier or otherwise, is not added again.
func (o *reconciler) keep() {
	for _, l := range o.links {
		for a := range l.ours {
			if o.found[a] != l.name {
				continue
			}
			if !l.usable {
				o.remove(l, a)
			} else if err := o.add(l, a); err != nil {
				klog.ErrorS(err, "Failed to renew the lifetime of an address", "address", a)
			}
		}
	}
}

// lacks returns an address that was found and is no longer held, or false if all are held.
func (o *reconciler) lacks() (netip.Addr, bool) {
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

// add adds an address to the kernel, or renews its lifetime.
func (o *reconciler) add(l *link, a netip.Addr) error {
	err := l.hold(a)
	if err != nil {
		o.metrics.failed(operationAdd)
		return err
	}
	l.ours[a] = true
	return nil
}

// remove removes an address from the kernel.
func (o *reconciler) remove(l *link, a netip.Addr) {
	if err := l.drop(a); err != nil {
		o.metrics.failed(operationRemove)
		o.fail(a, err.Error())
		return
	}
	klog.InfoS("Removed address", "address", a, "interface", l.name)
	delete(l.ours, a)
	delete(o.claims, a)
	delete(o.claimed, a)
}

// read applies the annotation of a Node. An annotation that can't be parsed changes nothing.
func (o *reconciler) read(n *corev1.Node) error {
	held, err := sdn.Parse(n.Annotations[v1alpha1.AnnotationVIPs])
	if err != nil {
		return fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationVIPs, err)
	}
	o.setWanted(held, n.ResourceVersion)
	return nil
}

func (o *reconciler) setWanted(held []world.Held, version string) {
	want := make(map[netip.Addr]world.Held, len(held))
	for _, h := range held {
		want[h.Addr] = h
	}
	o.known, o.want, o.version = true, want, version
}

// look reads the kernel's interfaces. It reports whether the carrier has returned on an interface with desired
// addresses. The Node may have changed in the meantime.
func (o *reconciler) look() (returned bool, err error) {
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

// apply makes the kernel match the desired state. Removals come first. If renew is set, the lifetime of all addresses
// starts again. Interfaces without a carrier hold no address: a node that returns to the segment must not answer for
// addresses that another node has taken.
func (o *reconciler) apply(renew bool) {
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
			klog.InfoS("Added address", "address", a, "interface", l.name, "service", h.Service.String())
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

// release removes addresses from a link that must not be held there.
func (o *reconciler) release(l *link) {
	for a := range l.ours {
		if h, stays := o.want[a]; stays && h.Interface == l.name && l.usable {
			continue
		}
		o.remove(l, a)
	}
}

func (o *reconciler) fail(a netip.Addr, why string) {
	if o.failed == nil {
		o.failed = map[netip.Addr]string{}
	}
	o.failed[a] = why
}

// count returns the number of our addresses in the kernel.
func (o *reconciler) count() int {
	n := 0
	for _, l := range o.links {
		n += len(l.ours)
	}
	return n
}

// foreign reports whether an address is one of the node's own addresses.
func (l *link) foreign(a netip.Addr) bool {
	return slices.ContainsFunc(l.own, func(p netip.Prefix) bool { return p.Addr() == a })
}

// claim starts to announce an address that was added or moved here.
func (o *reconciler) claim(h world.Held) {
	if generation, done := o.claimed[h.Addr]; !done || generation != h.Generation {
		o.claimed[h.Addr] = h.Generation
		o.claims.start(h.Addr, h.Interface, time.Now())
	}
}

// unfit returns why the node must not hold addresses, or an empty string.
func (o *reconciler) unfit() string {
	if o.ending {
		return ends
	}
	if a, lacks := o.lacks(); lacks && !o.known {
		return fmt.Sprintf("its agent cannot read the Node, and the node does not hold %s any more", a)
	}
	for _, h := range o.want {
		if o.down[h.Interface] {
			return fmt.Sprintf("interface %s has no carrier", h.Interface)
		}
	}
	return ""
}

// interfaces returns the interfaces that may attach the node to a segment, with their own addresses.
func (o *reconciler) interfaces() map[string][]netip.Prefix {
	out := map[string][]netip.Prefix{}
	for _, l := range o.links {
		if l.usable && len(l.own) > 0 {
			out[l.name] = l.own
		}
	}
	return out
}

// clear removes all our addresses.
func (o *reconciler) clear() error {
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
