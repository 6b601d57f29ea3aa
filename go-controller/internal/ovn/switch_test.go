// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

const switchSchema = "openvswitch/vswitch.ovsschema"

// The links of a physical network are the devices on the bridge mapped to it. A loss of carrier is reported as Open
// vSwitch records it.
func TestSwitchNetworks(t *testing.T) {
	t.Parallel()
	server := serve(t, switchSchema)
	vsctl := func(args ...string) {
		run(t, "ovs-vsctl", append([]string{"--db=unix:" + server.socket, "--no-wait"}, args...)...)
	}
	vsctl("init", "--", "set", "Open_vSwitch", ".",
		"external_ids:ovn-bridge-mappings=physnet:br-ex, provider:br-provider,nowhere:br-none,"+
			"chained:br-chained,alone:br-alone",
		"--", "add-br", "br-ex", "--", "set", "Bridge", "br-ex", "external_ids:bridge-uplink=bond",
		"--", "add-bond", "br-ex", "bond", "eno1", "eno2", "--", "add-port", "br-ex", "vm7",
		"--", "add-br", "br-provider", "--", "add-port", "br-provider", "eno3",
		"--", "add-port", "br-provider", "patch-x", "--", "set", "Interface", "patch-x", "type=patch", "options:peer=patch-y",
		"--", "add-port", "br-ex", "patch-slb-lan-localnet-to-br-int", "--", "set", "Interface",
		"patch-slb-lan-localnet-to-br-int", "type=patch",
		"options:peer=patch-br-int-to-slb-lan-localnet", "--", "set", "Port", "patch-slb-lan-localnet-to-br-int",
		"external_ids:ovn-localnet-port=slb-lan-localnet",
		"--", "add-br", "br-chained", "--", "add-port", "br-chained", "patch-a", "--", "set", "Interface", "patch-a",
		"type=patch", "options:peer=patch-b",
		"--", "add-br", "br-alone", "--", "add-port", "br-alone", "patch-alone-to-br-int", "--", "set", "Interface",
		"patch-alone-to-br-int", "type=patch", "options:peer=patch-br-int-to-alone", "--", "set", "Port",
		"patch-alone-to-br-int", "external_ids:ovn-localnet-port=alone",
		"--", "add-br", "br-int", "--", "add-port", "br-int", "pod1")
	changed := make(chan struct{}, 1)
	s, err := NewSwitch(Endpoint{Address: "unix:" + server.socket}, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := s.Networks(); known {
		t.Error("networks are known before the database was read")
	}
	go func() { _ = s.Run(t.Context()) }()
	patches := map[string]int{}
	expect := func(when string, eno1, eno2, eno3 bool) {
		t.Helper()
		want := map[string]Uplinks{
			"physnet":  {Bridge: "br-ex", Links: []Uplink{{"eno1", eno1}, {"eno2", eno2}}, Patches: patches},
			"provider": {Bridge: "br-provider", Links: []Uplink{{"eno3", eno3}}, Patches: map[string]int{}},
			"chained":  {Bridge: "br-chained", Patches: map[string]int{}},
			"alone":    {Bridge: "br-alone", Isolated: true, Patches: map[string]int{}},
			"nowhere":  {Bridge: "br-none", Missing: true, Patches: map[string]int{}},
		}
		await.True(t, when, func() bool {
			got, known := s.Networks()
			return known && cmp.Equal(got, want)
		})
	}
	expect("at the start", false, false, false)
	vsctl("set", "Interface", "eno3", "link_state=down", "--", "set", "Interface", "eno1", "link_state=down", "--", "set",
		"Interface", "eno2", "link_state=up")
	expect("links lost", true, false, true)
	<-changed
	vsctl("set", "Interface", "eno3", "link_state=up")
	expect("a link is back", true, false, false)
	vsctl("set", "Interface", "patch-slb-lan-localnet-to-br-int", "ofport=7")
	patches["slb-lan-localnet"] = 7
	expect("OVN's port has its number", true, false, false)

	server.kill()
	await.True(t, "the server is gone", func() bool { _, known := s.Networks(); return !known })
	server.start(t)
	await.True(t, "and back", func() bool { _, known := s.Networks(); return known })
}
