// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/speaker"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

// speakerOfNode is FRR on the node, with a session with graceful restart from the node's host 2 to the router.
func (s *site) speakerOfNode(t *testing.T) frr.Router {
	t.Helper()
	// ip-netns(8) runs FRR in the node's namespace, with mounts of its own.
	name := s.Name + "-node"
	run(t, "ip", "netns", "attach", name, fmt.Sprint(os.Getpid()))
	theirs := frr.Router{Name: name, Dir: s.Dir + "-node", Netns: name}
	t.Cleanup(func() {
		if err := theirs.Kill(); err != nil {
			t.Error(err)
		}
	})
	if err := theirs.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	router := s.host(false, 1).Addr()
	err := theirs.Configure(t.Context(), fmt.Sprintf("router bgp %d", nodeASN), " bgp router-id 10.255.0.2",
		" no bgp ebgp-requires-policy", " bgp graceful-restart", " timers bgp 3 9",
		fmt.Sprintf(" neighbor %s remote-as %d", router, routerASN),
		fmt.Sprintf(" neighbor %s update-source %s", router, s.host(false, 2).Addr()))
	if err != nil {
		t.Fatal(err)
	}
	return theirs
}

// awaitSession waits until the router has a session with the node's host 2, from a speaker with a router ID.
func (s *site) awaitSession(t *testing.T, routerID string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		state, err := s.neighborState(ctx, s.host(false, 2).Addr().String())
		if err == nil && (state["bgpState"] != "Established" || state["remoteRouterId"] != routerID) {
			err = fmt.Errorf("the session is %v, of %v", state["bgpState"], state["remoteRouterId"])
		}
		return err
	})
}

const notDialed = "not dialed: another BGP speaker of this node (FRR of frr-k8s?) has a session from "

// FRR on the node has a session with graceful restart to the router, and a BGPPeer wants one between the same
// addresses, which would replace it. FRR's session stays as it is, and the last error names it. Ours opens when FRR has
// ended.
func TestSessionOfAnotherSpeakerOfTheNode(t *testing.T) {
	t.Parallel()
	s := newSite(t, 15)
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), " bgp graceful-restart")
	s.configure(t, s.neighbor(false, 2, nodeASN)...)
	theirs := s.speakerOfNode(t)
	s.awaitSession(t, "10.255.0.2")

	n := newNode(t, speaker.Options{})
	n.want(s.session("tor", false, 2))
	own := s.host(false, 2).Addr().String()
	refusal(t, n, "tor", notDialed+own+" to "+s.host(false, 1).Addr().String())
	state, err := s.neighborState(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	const established, dropped = "connectionsEstablished", "connectionsDropped"
	if state[established] != 1.0 || state[dropped] != 0.0 {
		t.Errorf("FRR's session: established %v times, dropped %v times", state[established], state[dropped])
	}
	if err := theirs.Kill(); err != nil {
		t.Fatal(err)
	}
	n.established(t, "tor")
}

// FRR starts on the node when we have a session between the same addresses. As soon as the router has FRR's, ours ends
// for good: the two do not replace each other.
func TestAnotherSpeakerComesLater(t *testing.T) {
	t.Parallel()
	s := newSite(t, 16)
	s.configure(t, fmt.Sprintf("router bgp %d", routerASN), " bgp graceful-restart")
	s.configure(t, s.neighbor(false, 2, nodeASN)...)
	n := newNode(t, speaker.Options{})
	c := s.session("tor", false, 2)
	c.Neighbor.GracefulRestart = true
	n.want(c)
	n.established(t, "tor")
	s.speakerOfNode(t)
	s.awaitSession(t, "10.255.0.2")
	refusal(t, n, "tor", notDialed)
	s.awaitSession(t, "10.255.0.2")
}
