// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

// addressProber probes segments for the addresses that the controller is about to announce there. It keeps sockets
// open only while there are probes.
type addressProber struct {
	// networks returns the node's networks and their links.
	networks func() (map[string]ovn.Uplinks, bool)
	// report receives the conflicts, and the IDs of the probe requests that were completed.
	report  func(conflicts map[netip.Addr]convert.ConflictReport, probed []string)
	metrics *metrics
	// leases receives new versions of the node's Lease.
	leases chan *coordinationv1.Lease

	probes   addressProbes
	ports    map[string]*neighbour.Port // by device
	unopened map[string]string          // why a device could not be opened last time
	received chan receivedAnswer
	// leaseRead is true once the Lease has been read. reported and probed are the last report.
	leaseRead bool
	reported  map[netip.Addr]convert.ConflictReport
	probed    []string
}

type receivedAnswer struct {
	device string
	neighbour.Answer
}

func newAddressProber(networks func() (map[string]ovn.Uplinks, bool),
	report func(map[netip.Addr]convert.ConflictReport, []string)) *addressProber {
	return &addressProber{
		networks: networks, report: report, leases: make(chan *coordinationv1.Lease),
		probes: addressProbes{}, ports: map[string]*neighbour.Port{}, unopened: map[string]string{},
		received: make(chan receivedAnswer),
	}
}

func (i *addressProber) run(ctx context.Context) {
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	defer i.close()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-i.leases:
			i.handleLease(l)
		case h := <-i.received:
			if i.probes[h.Addr] == nil {
				continue // Nothing has changed, and a segment may carry any number of such frames.
			}
			i.metrics.answers.Inc()
			if !i.probes.receive(time.Now(), i.networksOf(h.device), h.Answer) {
				continue
			}
		case <-again.C:
		}
		again.Stop()
		ask, next := i.probes.due(time.Now())
		for _, a := range ask {
			i.probes[a].asked(time.Now(), i.sendProbe(ctx, a, i.probes[a]))
		}
		if !next.IsZero() {
			again.Reset(time.Until(next))
		} else {
			i.close()
		}
		found, probed := i.probes.conflicts(), i.probes.probed()
		if i.leaseRead && (i.reported == nil || !maps.Equal(found, i.reported) || !containsAll(i.probed, probed)) {
			i.logNew(found)
			i.reported, i.probed = found, probed
			i.report(found, probed)
		}
	}
}

// logNew logs the first conflict that was not reported yet, with their number: a host that answers for all addresses
// causes hundreds.
func (i *addressProber) logNew(found map[netip.Addr]convert.ConflictReport) {
	var fresh []netip.Addr
	for a := range found {
		if _, known := i.reported[a]; !known {
			fresh = append(fresh, a)
		}
	}
	if len(fresh) > 0 {
		first := slices.MinFunc(fresh, netip.Addr.Compare)
		klog.InfoS("Address conflict detected", "address", first, "mac", found[first].MAC, "since", found[first].Since,
			"newConflicts", len(fresh))
	}
}

// containsAll reports whether a list has all elements of another. A completed request that the controller has removed
// stays in the report until there is something to report.
func containsAll(list, other []string) bool {
	return !slices.ContainsFunc(other, func(s string) bool { return !slices.Contains(list, s) })
}

// handleLease reads the requested probes. Conflicts found by a previous guard are kept until there are new results.
func (i *addressProber) handleLease(l *coordinationv1.Lease) {
	var found map[netip.Addr]convert.ConflictReport
	if !i.leaseRead {
		found = convert.ReadReport(l).Conflicts
	}
	i.leaseRead = true
	i.probes.setRequests(time.Now(), convert.ProbeRequests(l), found)
}

// sendProbe sends one probe on the links of the network. It returns false if it was sent on none.
func (i *addressProber) sendProbe(ctx context.Context, a netip.Addr, q *addressProbe) bool {
	sent := false
	networks, _ := i.networks()
	for _, link := range networks[q.network].Links {
		if link.NoCarrier {
			continue // the kernel would discard the probe, and report no error
		}
		port := i.ports[link.Name]
		if port == nil {
			var err error
			if port, err = neighbour.Open(link.Name); err != nil {
				if text := err.Error(); i.unopened[link.Name] != text { // each probe is repeated until it can be sent
					i.unopened[link.Name] = text
					klog.ErrorS(err, "Failed to probe an address", "address", a)
				}
				continue
			}
			delete(i.unopened, link.Name)
			i.ports[link.Name] = port
			go i.listen(ctx, link.Name, port)
		}
		if err := port.Ask(a, q.vlan); err != nil {
			klog.V(2).InfoS("Failed to probe an address", "link", link.Name, "err", err)
			if errors.Is(err, unix.ENXIO) { // the device was replaced, and the socket stays without one
				port.Close()
				delete(i.ports, link.Name)
			}
			continue
		}
		i.metrics.probes.Inc()
		sent = true
	}
	return sent
}

// listen returns when the port is closed.
func (i *addressProber) listen(ctx context.Context, device string, port *neighbour.Port) {
	for {
		answer, err := port.Receive()
		if err != nil {
			return
		}
		select {
		case i.received <- receivedAnswer{device, answer}:
		case <-ctx.Done():
			return
		}
	}
}

// networksOf returns the networks that a device is connected to.
func (i *addressProber) networksOf(device string) map[string]bool {
	names := map[string]bool{}
	networks, _ := i.networks()
	for name, uplinks := range networks {
		for _, link := range uplinks.Links {
			if link.Name == device {
				names[name] = true
			}
		}
	}
	return names
}

func (i *addressProber) close() {
	for device, port := range i.ports {
		port.Close()
		delete(i.ports, device)
	}
	clear(i.unopened)
}
