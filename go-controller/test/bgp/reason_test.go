// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
)

// A router ends a session with a NOTIFICATION and closes all later connections at once. The NOTIFICATION is the last
// error until the session is Established again.
func TestNotificationStaysTheLastError(t *testing.T) {
	t.Parallel()
	s := newSite(t, 13)
	s.configure(t, "log stdout debugging", "debug bgp neighbor-events")
	s.configure(t, s.neighbor(false, 2, nodeASN)...)
	own := s.host(false, 2).Addr()
	n := newNode(t, speaker.Options{})
	c := s.session("tor", false, 2)
	c.Routes = map[netip.Prefix]bgp.Attributes{}
	n.want(c)
	n.established(t, "tor")
	router := fmt.Sprintf("router bgp %d", routerASN)
	s.configure(t, router, fmt.Sprintf(" neighbor %s shutdown message switch upgrade until 0500", own))
	const want = `received notification: code 6(cease) subcode 2(administrative shutdown): "switch upgrade until 0500"`
	refusal(t, n, "tor", want)
	said, before := n.state("tor").LastErrorTime, len(s.log(t))
	dialed := regexp.MustCompile(`connection from (host )?` + regexp.QuoteMeta(own.String()))
	eventually(t, func(context.Context) error {
		if got := len(dialed.FindAllString(s.log(t)[before:], -1)); got < 3 {
			return fmt.Errorf("the router saw %d connections", got)
		}
		return nil
	})
	s.configure(t, router, fmt.Sprintf(" no neighbor %s shutdown", own))
	n.established(t, "tor")
	n.recording.Lock()
	defer n.recording.Unlock()
	for _, state := range n.history["tor"] {
		if state.LastErrorTime.After(said) && !strings.Contains(state.LastError, want) {
			t.Errorf("after the NOTIFICATION: %+v", state)
		}
	}
}

// A router has a limit of prefixes for dynamic neighbors, which it accepts again at once. The session counts as down
// from the first end on, until one lasts.
func TestMaximumPrefixDampsTheSession(t *testing.T) {
	t.Parallel()
	s := newSite(t, 14)
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), " neighbor nodes peer-group",
		fmt.Sprintf(" neighbor nodes remote-as %d", nodeASN), " bgp listen range "+s.v4.String()+" peer-group nodes",
		" address-family ipv4 unicast", "  neighbor nodes activate", "  neighbor nodes maximum-prefix 2")
	n := newNode(t, speaker.Options{})
	c := s.session("tor", false, 2)
	c.Neighbor.IPv6 = false
	// How long a session must last after those that did not depends on it.
	c.Neighbor.Hold, c.Neighbor.Keepalive = 9*time.Second, 3*time.Second
	const routes = 6 // FRR notices some more than the limit only
	c.Routes = map[netip.Prefix]bgp.Attributes{}
	for i := range routes {
		maps.Copy(c.Routes, s.routes(2, fmt.Sprintf("203.0.113.%d/32", i)))
	}
	n.want(c)
	const want = "subcode 1(maximum number of prefixes reached): the limit is 2 of ipv4-unicast; the last session " +
		"ended within "
	eventually(t, func(context.Context) error {
		n.recording.Lock()
		defer n.recording.Unlock()
		sessions, since := 0, time.Time{}
		for _, state := range n.history["tor"] {
			if state.Phase != speaker.Established {
				continue
			}
			if state.Since.Equal(since) { // A session has several states, for example one for each change of a count.
				continue
			}
			sessions, since = sessions+1, state.Since
			// On a busy machine, it may last until it counts as up, which is tested on a virtual clock (package speaker).
			if sessions > 1 && (!state.Damped || !strings.Contains(state.LastError, want)) {
				t.Fatalf("session %d: %+v, want it damped because of %q", sessions, state, want)
			}
		}
		if sessions < 2 {
			return fmt.Errorf("%d sessions", sessions)
		}
		return nil
	})
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), " address-family ipv4 unicast",
		"  neighbor nodes maximum-prefix 100")
	eventually(t, func(context.Context) error {
		if state := n.state("tor"); state.Phase != speaker.Established || state.Damped || state.IPv4 != routes {
			return fmt.Errorf("state %+v", state)
		}
		return nil
	})
}
