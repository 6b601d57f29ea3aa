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

// Switch watches the Open vSwitch database of this node for the physical networks it is attached to and their links.
type Switch struct{ db *replica }

// Uplinks are the links of a node to a physical network.
type Uplinks struct {
	// Bridge is the bridge of the network in ovn-bridge-mappings.
	Bridge string
	// Missing means that Open vSwitch has no such bridge. Isolated means that the bridge has no ports but its own local
	// one and those of OVN, so that it leads to no network.
	Missing, Isolated bool
	// Links are sorted by name. A bridge without links may lead out of the node through another bridge.
	Links []Uplink
	// Patches maps the names of localnet ports of L2Domains to the OpenFlow port numbers of the bridge's patch ports
	// to OVN (Logical_Switch_Port in ovn-nb(5)).
	Patches map[string]int
}

// Uplink is a link to the outside of the node. NoCarrier means that Open vSwitch detects no carrier. It is false if the
// state is unknown.
type Uplink struct {
	Name      string
	NoCarrier bool
}

// NewSwitch returns a Switch. It does nothing before Run. changed is called for each change except that of a BFD
// session, from any goroutine, and must not block.
func NewSwitch(e Endpoint, changed func()) (*Switch, error) {
	if err := e.check("Open vSwitch"); err != nil {
		return nil, err
	}
	return &Switch{&replica{
		name: "Open vSwitch", endpoint: e, schema: vswitch, onSynced: changed,
		handler: &cache.EventHandlerFuncs{
			AddFunc: func(string, model.Model) { changed() },
			UpdateFunc: func(_ string, was, is model.Model) {
				if !onlyBFD(was, is) {
					changed()
				}
			},
			DeleteFunc: func(string, model.Model) { changed() },
		},
	}}, nil
}

func vswitch() (model.ClientDBModel, []watch, error) {
	db, err := vsdb.FullDatabaseModel()
	return db, []watch{{table: vsdb.OpenvSwitchTable}, {table: vsdb.BridgeTable}, {table: vsdb.PortTable},
		{table: vsdb.InterfaceTable}}, err
}

// Run keeps the connection until ctx ends.
func (s *Switch) Run(ctx context.Context) error { return s.db.run(ctx) }

// Networks returns the links of each physical network. It returns false while the database can't be read.
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
				networks[network] = uplinksOf(v, bridge)
			}
		}
	})
	return networks, true
}

// Chassis returns the name of the node's chassis and the addresses of its southbound database as ovn-controller reads
// them (ovn-controller(8)). Both are empty while the database can't be read, or without OVN.
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

// tunnelTo is the external_ids key of a Port that ovn-controller created as a tunnel (controller/encaps.c). Its value
// is the name of the other chassis, "@", and an address of that chassis, from OVN 24.03 on followed by "%" and one of
// this node.
const tunnelTo = "ovn-chassis-id"

// Tunnels reports for each chassis with which this node has a BFD session in a tunnel whether one of these sessions is
// up (Interface:bfd_status in ovs-vswitchd.conf.db(5)). ovn-controller maintains sessions between the members of HA
// chassis groups, and between these and the chassis that send to them (controller/bfd.c). Tunnels returns false while
// the database can't be read.
func (s *Switch) Tunnels() (map[string]bool, bool) {
	_, v, err := s.db.current()
	if err != nil {
		return nil, false
	}
	up := map[string]bool{}
	v.each(vsdb.PortTable, func(_ string, m model.Model) {
		port := m.(*vsdb.Port)
		chassis, _, ok := strings.Cut(port.ExternalIDs[tunnelTo], "@")
		if !ok || chassis == "" {
			return
		}
		for _, uuid := range port.Interfaces {
			i, ok := v.Table(vsdb.InterfaceTable).Row(uuid).(*vsdb.Interface)
			if ok && i.BFDStatus["state"] != "" { // without a session, it is empty
				up[chassis] = up[chassis] || i.BFDStatus["state"] == "up"
			}
		}
	})
	return up, true
}

// onlyBFD reports whether nothing but the state of a BFD session differs. A session may change several times in a
// second.
func onlyBFD(was, is model.Model) bool {
	before, ok := was.(*vsdb.Interface)
	if !ok {
		return false
	}
	now := is.(*vsdb.Interface).DeepCopy()
	now.BFDStatus = before.BFDStatus
	return before.Equals(now)
}

// localnetOf is the external_ids key of a Port that names the localnet port for which ovn-controller created it
// (controller/patch.c).
const localnetOf = "ovn-localnet-port"

// uplinksOf returns the ports of a bridge that lead out of the node, and those that connect L2Domains to OVN.
func uplinksOf(v view, name string) Uplinks {
	u := Uplinks{Bridge: name, Missing: true, Patches: map[string]int{}}
	v.each(vsdb.BridgeTable, func(_ string, m model.Model) {
		bridge := m.(*vsdb.Bridge)
		if bridge.Name != name {
			return
		}
		u.Missing, u.Isolated = false, true
		for _, uuid := range bridge.Ports {
			if port, ok := v.Table(vsdb.PortTable).Row(uuid).(*vsdb.Port); ok && port.Name != name { // not the local port
				u.addPort(v, bridge, port)
			}
		}
	})
	slices.SortFunc(u.Links, func(a, b Uplink) int { return cmp.Compare(a.Name, b.Name) })
	return u
}

// addPort adds a port of the bridge, other than its local port.
func (u *Uplinks) addPort(v view, bridge *vsdb.Bridge, port *vsdb.Port) {
	if localnet := port.ExternalIDs[localnetOf]; localnet != "" {
		if number := numberOf(v, port); plan.IsLocalnetPort(localnet) && number > 0 {
			u.Patches[localnet] = number
		}
		return
	}
	u.Isolated = false
	// If OVN-Kubernetes has recorded the bridge's uplink, ignore all other ports. Virtual machines may have links on the
	// bridge, too.
	if named := bridge.ExternalIDs["bridge-uplink"]; named != "" && named != port.Name {
		return
	}
	for _, uuid := range port.Interfaces {
		if i, ok := v.Table(vsdb.InterfaceTable).Row(uuid).(*vsdb.Interface); ok && isUplink(i) {
			lost := i.LinkState != nil && *i.LinkState == vsdb.InterfaceLinkStateDown
			u.Links = append(u.Links, Uplink{i.Name, lost})
		}
	}
}

// numberOf returns the OpenFlow port number of a port's interface. It is not above 0 until Open vSwitch has assigned
// one.
func numberOf(v view, port *vsdb.Port) int {
	for _, uuid := range port.Interfaces {
		if i, ok := v.Table(vsdb.InterfaceTable).Row(uuid).(*vsdb.Interface); ok && i.Ofport != nil {
			return *i.Ofport
		}
	}
	return 0
}

// isUplink reports whether an interface is a device of the node: type system, or a type of the userspace datapath
// (ovs-vswitchd.conf.db(5), Interface:type).
func isUplink(i *vsdb.Interface) bool {
	return slices.Contains([]string{"", "system", "dpdk", "afxdp", "afxdp-nonpmd"}, i.Type)
}
