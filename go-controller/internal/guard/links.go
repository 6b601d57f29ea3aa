// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/neighbour"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
)

const (
	// maxAnswerRate is how many frames per second are read from a link, which takes 1.5 % of a CPU. When more
	// come, reading pauses for pauseTime, and the kernel discards what its buffer does not hold. Then an answer may be
	// lost, so those to probes of pauseMemory later are not relied on. The same applies when the buffer has overflowed
	// for another reason.
	maxAnswerRate = 2000
	pauseTime     = 100 * time.Millisecond
	pauseMemory   = time.Second
	// pauseLogInterval is the minimum time between two lines in the log about that.
	pauseLogInterval = time.Minute
)

// links sends probes on the links of the node's networks, and receives what hosts on these segments claim. A frame of
// this node, also one of OVN, is not received. Only one goroutine may call the methods.
type links struct {
	// networks returns the node's networks and their links.
	networks func() (map[string]ovn.Uplinks, bool)
	metrics  *metrics
	ports    map[string]*port  // by device
	unopened map[string]string // why a device could not be opened last time
	received chan receivedAnswer
}

type port struct {
	*neighbour.Port
	pause pause
}

// pause records when reading was last paused, or frames were lost, in nanoseconds since 1970.
type pause struct {
	last atomic.Int64
	logs rate.Sometimes
}

func (p *pause) isRecent(now time.Time) bool {
	return now.Sub(time.Unix(0, p.last.Load())) < pauseMemory
}

func (l *links) recordPause(device string, p *pause) {
	l.metrics.pauses.Inc()
	p.last.Store(time.Now().UnixNano())
	p.logs.Do(func() {
		klog.InfoS("A link carries more ARP and ND than is read; address conflicts may be found late", "link", device,
			"readPerSecond", maxAnswerRate)
	})
}

type receivedAnswer struct {
	device string
	neighbour.Answer
}

func newLinks(networks func() (map[string]ovn.Uplinks, bool)) *links {
	return &links{networks: networks, ports: map[string]*port{}, unopened: map[string]string{},
		received: make(chan receivedAnswer)}
}

// probe sends one probe on the links of a network. sent is false if it was sent on none, and paused is true if the
// answer may be lost because reading from a link was paused a moment ago.
func (l *links) probe(ctx context.Context, a netip.Addr, network string, vlan int) (sent, paused bool) {
	networks, _ := l.networks()
	for _, link := range networks[network].Links {
		if link.NoCarrier {
			continue // the kernel would discard the probe, and report no error
		}
		to := l.ports[link.Name]
		if to == nil {
			opened, err := neighbour.Open(link.Name)
			if err != nil {
				if text := err.Error(); l.unopened[link.Name] != text { // each probe is repeated until it can be sent
					l.unopened[link.Name] = text
					klog.ErrorS(err, "Failed to probe an address", "address", a)
				}
				continue
			}
			delete(l.unopened, link.Name)
			to = &port{Port: opened, pause: pause{logs: rate.Sometimes{Interval: pauseLogInterval}}}
			l.ports[link.Name] = to
			go l.listen(ctx, link.Name, opened.Receive, &to.pause)
		}
		if err := to.Ask(a, vlan); err != nil {
			klog.V(2).InfoS("Failed to probe an address", "link", link.Name, "err", err)
			if errors.Is(err, unix.ENXIO) { // the device was replaced, and the socket stays without one
				to.Close()
				delete(l.ports, link.Name)
			}
			continue
		}
		l.metrics.probes.Inc()
		if to.Lost() {
			l.recordPause(link.Name, &to.pause)
		}
		sent, paused = true, paused || to.pause.isRecent(time.Now())
	}
	return sent, paused
}

// listen reads answers until the port is closed, at a limited rate: a host can send any number of frames, also such
// that are no answers.
func (l *links) listen(ctx context.Context, device string, receive func() (neighbour.Answer, bool, error),
	pauses *pause) {
	limit := rate.NewLimiter(maxAnswerRate, maxAnswerRate)
	for {
		answer, ok, err := receive()
		if err != nil {
			return
		}
		if ok {
			select {
			case l.received <- receivedAnswer{device, answer}:
			case <-ctx.Done():
				return
			}
		}
		if limit.Allow() {
			continue
		}
		l.recordPause(device, pauses)
		select {
		case <-time.After(pauseTime):
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
