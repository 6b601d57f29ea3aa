// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

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
