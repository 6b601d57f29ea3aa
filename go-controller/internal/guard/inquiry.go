// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"maps"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

// inquiry asks segments for the addresses that the controller wants to announce there. It
// has sockets open only while something is asked.
type inquiry struct {
	// networks are the node's, and their links.
	networks func() (map[string]ovn.Uplinks, bool)
	report   func(map[netip.Addr]convert.Stranger)
	metrics  *metrics
	// leases are the newest versions of the node's Lease.
	leases chan *coordinationv1.Lease

	questions questions
	ports     map[string]*neighbour.Port // by device
	heard     chan heard
	// begun: the Lease has been read. told is what was reported last.
	begun bool
	told  map[netip.Addr]convert.Stranger
}

type heard struct {
	device string
	neighbour.Answer
}

func newInquiry(networks func() (map[string]ovn.Uplinks, bool), report func(map[netip.Addr]convert.Stranger)) *inquiry {
	return &inquiry{
		networks: networks, report: report, leases: make(chan *coordinationv1.Lease),
		questions: questions{}, ports: map[string]*neighbour.Port{}, heard: make(chan heard),
	}
}

func (i *inquiry) run(ctx context.Context) {
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	defer i.close()
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-i.leases:
			i.take(l)
		case h := <-i.heard:
			if i.questions[h.Addr] != nil {
				i.metrics.answers.Inc()
			}
			i.questions.hear(time.Now(), i.networksOf(h.device), h.Answer)
		case <-again.C:
		}
		again.Stop()
		ask, next := i.questions.due(time.Now())
		for _, a := range ask {
			i.ask(ctx, a, i.questions[a])
		}
		if !next.IsZero() {
			again.Reset(time.Until(next))
		} else {
			i.close()
		}
		if found := i.questions.strangers(); i.begun && (i.told == nil || !maps.Equal(found, i.told)) {
			i.told = found
			i.report(found)
		}
	}
}

// take reads the questions. What a guard before us found stands until we know better.
func (i *inquiry) take(l *coordinationv1.Lease) {
	var found map[netip.Addr]convert.Stranger
	if !i.begun {
		found = convert.ReadReport(l).Conflicts
	}
	i.begun = true
	i.questions.take(time.Now(), convert.Questions(l), found)
}

func (i *inquiry) ask(ctx context.Context, a netip.Addr, q *question) {
	networks, _ := i.networks()
	for _, link := range networks[q.network].Links {
		port := i.ports[link.Name]
		if port == nil {
			var err error
			if port, err = neighbour.Open(link.Name); err != nil {
				klog.ErrorS(err, "An address can't be asked for", "address", a)
				continue
			}
			i.ports[link.Name] = port
			go i.listen(ctx, link.Name, port)
		}
		if err := port.Ask(a, q.vlan); err != nil {
			klog.V(2).InfoS("An address can't be asked for", "link", link.Name, "err", err)
			continue
		}
		i.metrics.probes.Inc()
	}
}

// listen ends when the port is closed.
func (i *inquiry) listen(ctx context.Context, device string, port *neighbour.Port) {
	for {
		answer, err := port.Hear()
		if err != nil {
			return
		}
		select {
		case i.heard <- heard{device, answer}:
		case <-ctx.Done():
			return
		}
	}
}

// networksOf are those that a device leads to.
func (i *inquiry) networksOf(device string) map[string]bool {
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

func (i *inquiry) close() {
	for device, port := range i.ports {
		port.Close()
		delete(i.ports, device)
	}
}
