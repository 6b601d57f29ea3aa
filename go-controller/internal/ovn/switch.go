// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/model"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/vsdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// Switch follows the Open vSwitch database of this node: which physical networks it is
// attached to, and by which links.
type Switch struct{ db *link }

// Uplinks are the links of a node to a physical network.
type Uplinks struct {
	// Bridge is the network's in ovn-bridge-mappings.
	Bridge string
	// Links are sorted by name. A bridge without any serves the node alone.
	Links []Uplink
	// Patches are the OpenFlow port numbers of the bridge's patch ports to OVN, by the names of the localnet ports of
	// L2Domains that they are for (Logical_Switch_Port in ovn-nb(5)).
	Patches map[string]int
}

// Uplink is a link that leads out of the node. Lost means that Open vSwitch sees no
// carrier; a state that it does not tell is no loss.
type Uplink struct {
	Name string
	Lost bool
}

// NewSwitch returns a Switch that does nothing before Run. Changed is called with each
// change, from any goroutine, and must not block.
func NewSwitch(e Endpoint, changed func()) (*Switch, error) {
	if err := e.check("Open vSwitch"); err != nil {
		return nil, err
	}
	return &Switch{&link{
		name: "Open vSwitch", endpoint: e, schema: vswitch, up: changed,
		handler: &cache.EventHandlerFuncs{
			AddFunc:    func(string, model.Model) { changed() },
			UpdateFunc: func(string, model.Model, model.Model) { changed() },
			DeleteFunc: func(string, model.Model) { changed() },
		},
	}}, nil
}

func vswitch() (model.ClientDBModel, []watch, error) {
	db, err := vsdb.FullDatabaseModel()
	return db, []watch{{table: vsdb.OpenvSwitchTable}, {table: vsdb.BridgeTable}, {table: vsdb.PortTable}, {table: vsdb.InterfaceTable}}, err
}

// Run keeps the connection until ctx ends.
func (s *Switch) Run(ctx context.Context) error { return s.db.run(ctx) }

// Networks returns the links of each physical network; false while the database can't be read.
func (s *Switch) Networks() (map[string]Uplinks, bool) {
	_, v, err := s.db.current()
	if err != nil {
		return nil, false
	}
	networks := map[string]Uplinks{}
	v.each(vsdb.OpenvSwitchTable, func(_ string, m model.Model) {
		mappings := m.(*vsdb.OpenvSwitch).ExternalIDs["ovn-bridge-mappings"] // ovn-controller(8)
		for mapping := range strings.SplitSeq(mappings, ",") {
			if network, bridge, ok := strings.Cut(strings.TrimSpace(mapping), ":"); ok {
				links, patches := portsOf(v, bridge)
				networks[network] = Uplinks{bridge, links, patches}
			}
		}
	})
	return networks, true
}

// Chassis returns the name of the node's chassis and the addresses of its southbound database as ovn-controller reads them
// (ovn-controller(8)); empty while the database can't be read, or without OVN.
func (s *Switch) Chassis() (name, remote string) {
	_, v, err := s.db.current()
	if err != nil {
		return "", ""
	}
	v.each(vsdb.OpenvSwitchTable, func(_ string, m model.Model) {
		ids := m.(*vsdb.OpenvSwitch).ExternalIDs
		name, remote = ids["system-id"], ids["ovn-remote"]
	})
	return name, remote
}

// localnetOf is the key of a Port's external_ids under which ovn-controller names the localnet port that it created the
// port for (controller/patch.c).
const localnetOf = "ovn-localnet-port"

// portsOf are the ports of a bridge that lead out of the node, and those that lead to OVN for L2Domains.
func portsOf(v view, name string) (links []Uplink, patches map[string]int) {
	patches = map[string]int{}
	v.each(vsdb.BridgeTable, func(_ string, m model.Model) {
		bridge := m.(*vsdb.Bridge)
		if bridge.Name != name {
			return
		}
		for _, uuid := range bridge.Ports {
			port, ok := v.Table(vsdb.PortTable).Row(uuid).(*vsdb.Port)
			if !ok {
				continue
			}
			if localnet := port.ExternalIDs[localnetOf]; plan.IsLocalnetPort(localnet) {
				if number := numberOf(v, port); number > 0 {
					patches[localnet] = number
				}
				continue
			}
			// Where OVN-Kubernetes named the bridge's uplink, only that counts: virtual
			// machines may have links there, too.
			if named := bridge.ExternalIDs["bridge-uplink"]; named != "" && named != port.Name {
				continue
			}
			for _, uuid := range port.Interfaces {
				i, ok := v.Table(vsdb.InterfaceTable).Row(uuid).(*vsdb.Interface)
				if ok && leadsOut(i) {
					lost := i.LinkState != nil && *i.LinkState == vsdb.InterfaceLinkStateDown
					links = append(links, Uplink{i.Name, lost})
				}
			}
		}
	})
	slices.SortFunc(links, func(a, b Uplink) int { return cmp.Compare(a.Name, b.Name) })
	return links, patches
}

// numberOf is the OpenFlow port number of a port's interface; not above 0 while Open vSwitch has given none.
func numberOf(v view, port *vsdb.Port) int {
	for _, uuid := range port.Interfaces {
		if i, ok := v.Table(vsdb.InterfaceTable).Row(uuid).(*vsdb.Interface); ok && i.Ofport != nil {
			return *i.Ofport
		}
	}
	return 0
}

// leadsOut tells whether an interface is a device of the node: of type system, or one of
// the userspace datapath (ovs-vswitchd.conf.db(5), Interface:type).
func leadsOut(i *vsdb.Interface) bool {
	return slices.Contains([]string{"", "system", "dpdk", "afxdp", "afxdp-nonpmd"}, i.Type)
}
