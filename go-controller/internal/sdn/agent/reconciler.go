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

// errStoodStill is why an address is not added that has expired while the agent stood still.
var errStoodStill = errors.New("its agent stood still until the address had expired, and cannot read the Node")

const eventUnreadable = v1alpha1.EventVIPsUnreadable

// reconciler makes the addresses in the kernel match the Node's annotation. It must be used from one goroutine.
type reconciler struct {
	// known is true once the Node has been read. want are the addresses to hold, by address, and version is the Node's
	// version.
	known   bool
	want    map[netip.Addr]world.Held
	version string
	// outdated is true while other nodes may have addresses in want, because the agent stood still. Then no address is
	// added. withheld is true if one was not for this reason.
	outdated, withheld bool
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
func (r *reconciler) find() error {
	if _, err := r.readLinks(); err != nil {
		return err
	}
	r.found = map[netip.Addr]string{}
	for _, l := range r.links {
		for a := range l.ours {
			r.found[a] = l.name
		}
	}
	return nil
}

// keep renews the addresses found at the start. Before the Node has been read, the kernel is the only source for its
// contents. An address that an interface has lost, with its carrier or otherwise, is not added again.
func (r *reconciler) keep() {
	for _, l := range r.links {
		for a := range l.ours {
			if r.found[a] != l.name {
				continue
			}
			if !l.usable {
				r.remove(l, a)
			} else if err := r.add(l, a); err != nil {
				klog.ErrorS(err, "Failed to renew the lifetime of an address", "address", a)
			}
		}
	}
}

// lostAddress returns an address that was found and is no longer held, or false if all are held.
func (r *reconciler) lostAddress() (netip.Addr, bool) {
	held := map[netip.Addr]bool{}
	for _, l := range r.links {
		for a := range l.ours {
			held[a] = l.usable
		}
	}
	for a := range r.found {
		if !held[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// add adds an address to the kernel, or renews its lifetime.
func (r *reconciler) add(l *link, a netip.Addr) error {
	err := l.addAddress(a)
	if err != nil {
		r.metrics.failed(operationAdd)
		return err
	}
	l.ours[a] = true
	return nil
}

// remove removes an address from the kernel.
func (r *reconciler) remove(l *link, a netip.Addr) {
	if err := l.removeAddress(a); err != nil {
		r.metrics.failed(operationRemove)
		r.fail(a, err.Error())
		return
	}
	klog.InfoS("Removed address", "address", a, "interface", l.name)
	delete(l.ours, a)
	delete(r.claims, a)
	delete(r.claimed, a)
}

// read applies the annotation of a Node. An annotation that can't be parsed changes nothing.
func (r *reconciler) read(n *corev1.Node) error {
	held, err := sdn.Parse(n.Annotations[v1alpha1.AnnotationVIPs])
	if err != nil {
		return fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationVIPs, err)
	}
	r.setWanted(held, n.ResourceVersion)
	return nil
}

func (r *reconciler) setWanted(held []world.Held, version string) {
	want := make(map[netip.Addr]world.Held, len(held))
	for _, h := range held {
		want[h.Addr] = h
	}
	r.known, r.want, r.version = true, want, version
}

// readLinks reads the kernel's interfaces. It reports whether the carrier has returned on an interface with desired
// addresses. The Node may have changed in the meantime.
func (r *reconciler) readLinks() (returned bool, err error) {
	links, err := listLinks()
	if err != nil {
		r.metrics.failed(operationRead)
		return false, err
	}
	wanted := map[string]bool{}
	for _, h := range r.want {
		wanted[h.Interface] = true
	}
	down := map[string]bool{}
	for _, l := range links {
		if !l.usable {
			down[l.name] = true
		} else if r.down[l.name] && wanted[l.name] {
			returned = true
		}
	}
	r.links, r.down = links, down
	return returned, nil
}

// apply makes the kernel match the desired state. Removals come first. If renew is set, the lifetime of all addresses
// starts again. Interfaces without a carrier hold no address: a node that returns to the segment must not answer for
// addresses that another node has taken.
func (r *reconciler) apply(renew bool) {
	before := r.failed
	r.withheld = false
	r.failed = map[netip.Addr]string{}
	byName := make(map[string]*link, len(r.links))
	for _, l := range r.links {
		byName[l.name] = l
		r.removeUnwanted(l)
	}
	for _, a := range slices.SortedFunc(maps.Keys(r.want), netip.Addr.Compare) {
		h := r.want[a]
		if err := r.hold(byName[h.Interface], h, renew); err != nil {
			r.fail(a, err.Error())
			if _, known := before[a]; !known {
				klog.ErrorS(err, "Node does not hold an address", "address", a, "service", h.Service.String())
			}
		}
	}
	for a := range r.claimed {
		if _, held := r.want[a]; !held {
			delete(r.claimed, a)
		}
	}
}

// hold has an interface, which is nil if it does not exist, hold an address, and starts to announce one that is new.
func (r *reconciler) hold(l *link, h world.Held, renew bool) error {
	switch {
	case l == nil:
		return fmt.Errorf("interface %q does not exist", h.Interface)
	case !l.usable:
		return fmt.Errorf("interface %s has no carrier", l.name)
	case r.outdated && !l.ours[h.Addr]:
		r.withheld = true
		delete(r.claims, h.Addr)
		delete(r.claimed, h.Addr)
		return errStoodStill
	}
	if _, announced := r.claimed[h.Addr]; announced && !l.ours[h.Addr] {
		klog.InfoS("Address is gone, adding it again", "address", h.Addr, "interface", l.name)
		delete(r.claimed, h.Addr)
	}
	if l.others[h.Addr] {
		return fmt.Errorf("interface %s has %s, and not from here", l.name, h.Addr)
	}
	had := l.ours[h.Addr]
	if !had || renew {
		if err := r.add(l, h.Addr); err != nil {
			return err
		}
	}
	if !had {
		klog.InfoS("Added address", "address", h.Addr, "interface", l.name, "service", h.Service.String())
	}
	r.claim(h)
	return nil
}

// removeUnwanted removes addresses from a link that must not be held there.
func (r *reconciler) removeUnwanted(l *link) {
	for a := range l.ours {
		if h, stays := r.want[a]; stays && h.Interface == l.name && l.usable {
			continue
		}
		r.remove(l, a)
	}
}

func (r *reconciler) fail(a netip.Addr, why string) {
	if r.failed == nil {
		r.failed = map[netip.Addr]string{}
	}
	r.failed[a] = why
}

// count returns the number of our addresses in the kernel.
func (r *reconciler) count() int {
	n := 0
	for _, l := range r.links {
		n += len(l.ours)
	}
	return n
}

// claim starts to announce an address that was added or moved here.
func (r *reconciler) claim(h world.Held) {
	if generation, done := r.claimed[h.Addr]; !done || generation != h.Generation {
		r.claimed[h.Addr] = h.Generation
		r.claims.start(h.Addr, h.Interface, time.Now())
	}
}

// unfit returns why the node must not hold addresses, or an empty string.
func (r *reconciler) unfit() string {
	if r.ending {
		return ends
	}
	if a, lacks := r.lostAddress(); lacks && !r.known {
		return fmt.Sprintf("its agent cannot read the Node, and the node does not hold %s any more", a)
	}
	if r.withheld {
		return errStoodStill.Error()
	}
	for _, h := range r.want {
		if r.down[h.Interface] {
			return fmt.Sprintf("interface %s has no carrier", h.Interface)
		}
	}
	return ""
}

// interfaces returns the interfaces that may attach the node to a segment, with their own addresses.
func (r *reconciler) interfaces() map[string][]netip.Prefix {
	out := map[string][]netip.Prefix{}
	for _, l := range r.links {
		if l.usable && len(l.own) > 0 {
			out[l.name] = l.own
		}
	}
	return out
}

// singles returns the node's own addresses without a subnet on these interfaces, sorted. Some are on several. Those on
// others may be addresses of Services that a proxy has in the kernel.
func (r *reconciler) singles() []netip.Addr {
	var out []netip.Addr
	for _, l := range r.links {
		if l.usable {
			out = append(out, l.singles...)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// clear removes all our addresses.
func (r *reconciler) clear() error {
	links, err := listLinks()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range links {
		for a := range l.ours {
			errs = append(errs, l.removeAddress(a))
		}
	}
	return errors.Join(errs...)
}
