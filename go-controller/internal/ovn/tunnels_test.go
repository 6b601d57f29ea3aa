// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/vsdb"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// The state of a tunnel is that of its BFD session, as ovs-vswitchd records it: with several addresses of a chassis one
// that is up suffices, and a tunnel without a session says nothing.
func TestSwitchTunnels(t *testing.T) {
	t.Parallel()
	server := serve(t, switchSchema)
	vsctl := func(args ...string) {
		run(t, "ovs-vsctl", append([]string{"--db=unix:" + server.socket, "--no-wait"}, args...)...)
	}
	tunnel := func(name, id string) []string {
		return []string{"--", "add-port", "br-int", name, "--", "set", "Interface", name, "type=geneve",
			"options:remote_ip=192.0.2.1", "bfd:enable=true", "--", "set", "Port", name, "external_ids:ovn-chassis-id=" + id}
	}
	args := []string{"init", "--", "add-br", "br-int", "--", "add-port", "br-int", "pod1"}
	args = append(args, tunnel("ovn-c2-0", "c2@192.0.2.2")...)
	args = append(args, tunnel("ovn-c3-0", "c3@192.0.2.3%192.0.2.1")...)
	args = append(args, tunnel("ovn-c3-1", "c3@2001:db8::3%2001:db8::1")...)
	args = append(args, tunnel("ovn-c4-0", "c4@192.0.2.4%192.0.2.1")...)
	args = append(args, tunnel("ovn-none-0", "@192.0.2.9")...)
	vsctl(args...)
	s, err := NewSwitch(Endpoint{Address: "unix:" + server.socket}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := s.Tunnels(); known {
		t.Error("tunnels are known before the database was read")
	}
	go func() { _ = s.Run(t.Context()) }()
	expect := func(when string, want map[string]bool) {
		t.Helper()
		await.True(t, when, func() bool {
			got, known := s.Tunnels()
			return known && maps.Equal(got, want)
		})
	}
	expect("without a session", map[string]bool{})
	state := func(name, state string) []string {
		return []string{"--", "set", "Interface", name, "bfd_status:state=" + state, "bfd_status:forwarding=false",
			"bfd_status:diagnostic=\"No Diagnostic\"", "bfd_status:flap_count=1"}
	}
	vsctl(append(append(state("ovn-c2-0", "up"), state("ovn-c3-0", "down")...), state("ovn-c3-1", "init")...)[1:]...)
	expect("sessions began", map[string]bool{"c2": true, "c3": false})
	vsctl(append(state("ovn-c2-0", "down"), state("ovn-c3-1", "up")...)[1:]...)
	expect("one of two addresses is reached", map[string]bool{"c2": false, "c3": true})
	vsctl("set", "Interface", "ovn-c2-0", "bfd_status={}")
	expect("a session ended", map[string]bool{"c3": true})
}

// Sessions may change several times in a second, and what depends on networks must not be computed again each time.
func TestOnlyBFDIsNoChangeOfANetwork(t *testing.T) {
	t.Parallel()
	was := &vsdb.Interface{Name: "ovn-c2-0", Type: "geneve", BFDStatus: map[string]string{"state": "up"}}
	is := was.DeepCopy()
	is.BFDStatus = map[string]string{"state": "down", "flap_count": "1"}
	if !onlyBFD(was, is) {
		t.Error("the state of a session counts as a change of a network")
	}
	down := vsdb.InterfaceLinkStateDown
	is.LinkState = &down
	if onlyBFD(was, is) {
		t.Error("the carrier does not count as a change of a network, beside the state of a session")
	}
	if onlyBFD(&vsdb.Port{Name: "p"}, &vsdb.Port{Name: "p", Interfaces: []string{"i"}}) {
		t.Error("a port's interfaces do not count as a change of a network")
	}
}
