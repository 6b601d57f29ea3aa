// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

// links sends probes on the links of the node's networks, and receives what hosts on these segments claim. A frame of
// this node, also one of OVN, is not received. Only one goroutine may call the methods.
type links struct {
	// networks returns the node's networks and their links.
	networks func() (map[string]ovn.Uplinks, bool)
	metrics  *metrics
	ports    map[string]*neighbour.Port // by device
	unopened map[string]string          // why a device could not be opened last time
	received chan receivedAnswer
}

type receivedAnswer struct {
	device string
	neighbour.Answer
}

func newLinks(networks func() (map[string]ovn.Uplinks, bool)) *links {
	return &links{networks: networks, ports: map[string]*neighbour.Port{}, unopened: map[string]string{},
		received: make(chan receivedAnswer)}
}

// probe sends one probe on the links of a network. It returns false if it was sent on none.
func (l *links) probe(ctx context.Context, a netip.Addr, network string, vlan int) bool {
	sent := false
	networks, _ := l.networks()
	for _, link := range networks[network].Links {
		if link.NoCarrier {
			continue // the kernel would discard the probe, and report no error
		}
		port := l.ports[link.Name]
		if port == nil {
			var err error
			if port, err = neighbour.Open(link.Name); err != nil {
				if text := err.Error(); l.unopened[link.Name] != text { // each probe is repeated until it can be sent
					l.unopened[link.Name] = text
					klog.ErrorS(err, "Failed to probe an address", "address", a)
				}
				continue
			}
			delete(l.unopened, link.Name)
			l.ports[link.Name] = port
			go l.listen(ctx, link.Name, port)
		}
		if err := port.Ask(a, vlan); err != nil {
			klog.V(2).InfoS("Failed to probe an address", "link", link.Name, "err", err)
			if errors.Is(err, unix.ENXIO) { // the device was replaced, and the socket stays without one
				port.Close()
				delete(l.ports, link.Name)
			}
			continue
		}
		l.metrics.probes.Inc()
		sent = true
	}
	return sent
}

// listen returns when the port is closed.
func (l *links) listen(ctx context.Context, device string, port *neighbour.Port) {
	for {
		answer, err := port.Receive()
		if err != nil {
			return
		}
		select {
		case l.received <- receivedAnswer{device, answer}:
		case <-ctx.Done():
			return
		}
	}
}

// networksOf returns the networks that a device is connected to.
func (l *links) networksOf(device string) map[string]bool {
	names := map[string]bool{}
	networks, _ := l.networks()
	for name, uplinks := range networks {
		for _, link := range uplinks.Links {
			if link.Name == device {
				names[name] = true
			}
		}
	}
	return names
}

// close closes the sockets. They are opened again when they are needed.
func (l *links) close() {
	for device, port := range l.ports {
		port.Close()
		delete(l.ports, device)
	}
	clear(l.unopened)
}
