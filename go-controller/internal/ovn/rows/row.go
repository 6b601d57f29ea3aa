// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"fmt"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The tables of the northbound database (ovn-nb(5)) in which we own rows.
const (
	ACL            = "ACL"
	AddressSet     = "Address_Set"
	BFD            = "BFD"
	Copp           = "Copp"
	HAChassis      = "HA_Chassis"
	HAChassisGroup = "HA_Chassis_Group"
	LoadBalancer   = "Load_Balancer"
	Meter          = "Meter"
	MeterBand      = "Meter_Band"
	Policy         = "Logical_Router_Policy"
	Router         = "Logical_Router"
	RouterPort     = "Logical_Router_Port"
	StaticRoute    = "Logical_Router_Static_Route"
	Switch         = "Logical_Switch"
	SwitchPort     = "Logical_Switch_Port"
)

// Rows of OVN-Kubernetes that our rows are attached to.
const (
	ClusterRouter     = "ovn_cluster_router"
	ClusterRouterPort = "rtoj-ovn_cluster_router"
	JoinSwitch        = "join"
	// Followed by a node's name, these prefixes name the cluster router's port on the switch of the node's pods, and
	// the ports of the node's gateway router on the join switch and to the outside.
	PodPortPrefix      = "rtos-"
	GatewayPortPrefix  = "rtoj-GR_"
	ExternalPortPrefix = "rtoe-GR_"
	// TransitPortPrefix, followed by the name of the zone's node, names the cluster router's port on the transit switch,
	// which connects the zones of a cluster with interconnect.
	TransitPortPrefix = "rtots-"
	// ExternalSwitchPrefix, followed by a node's name, names the switch between the node's gateway router and its bridge.
	ExternalSwitchPrefix = "ext_"
	// ManagementPortPrefix, followed by a node's name, names the port that connects the node itself to the switch of
	// its pods.
	ManagementPortPrefix = "k8s-"
)

// Controller is the value of external_ids:k8s.ovn.org/owner-controller in rows we own.
const Controller = "ovnkube-slb"

// The keys of external_ids that we set.
const (
	KeyController = "k8s.ovn.org/owner-controller"
	KeyOwnerType  = "k8s.ovn.org/owner-type"
	KeyPrimaryID  = "k8s.ovn.org/primary-id"
	// KeyService is the namespace/name of the Service that a load balancer or an ACL is for.
	KeyService = "slb.k8s.ovn.org/service"
	// KeyShard is the domain/index of the shard that a row belongs to.
	KeyShard = "slb.k8s.ovn.org/shard"
	// KeyNode is the name of the node that a row belongs to.
	KeyNode = "slb.k8s.ovn.org/node"
	// KeyParent is the name of the parent of a row.
	KeyParent = "slb.k8s.ovn.org/holder"
	// KeyOrdinal is the number from which a shard's join addresses are derived.
	KeyOrdinal = "slb.k8s.ovn.org/ordinal"
	// KeyBoot is the ID of the boot of the node in which the order of gateways was last written. Only the HA_Chassis rows
	// of the zone's own chassis have it.
	KeyBoot = "slb.k8s.ovn.org/boot-id"
	// KeyAnnounce is the time in seconds after which guards repeat the announcements of a domain's shards, at its localnet
	// port. ovn-northd copies it to the southbound database.
	KeyAnnounce = "slb.k8s.ovn.org/announce-interval"
)

// The values of external_ids:k8s.ovn.org/owner-type.
const (
	OwnerDomain  = "Domain"
	OwnerShard   = "Shard"
	OwnerAliases = "Aliases"
	OwnerClients = "Clients"
	OwnerNode    = "Node"
	OwnerService = "Service"
	// OwnerProtection is that of the limits for packets that reach ovn-controller.
	OwnerProtection = "Protection"
	// OwnerRevision is that of the row that numbers transactions.
	OwnerRevision = "Revision"
)

// Row is a desired row.
type Row struct {
	Table string
	// ID is external_ids:k8s.ovn.org/primary-id. It is unique within the table.
	ID string
	// Columns contains all columns that we own. Other columns are not changed. The values are string, int, *string,
	// *int, *bool, []string (a sorted set), map[string]string, Ref, or []Ref for a set that must not be empty.
	Columns map[string]any
	// Parent is the set of another row that must contain this one, or zero.
	Parent ParentRef
}

// Name returns the row's name column, or an empty string in tables without one.
func (r Row) Name() string {
	name, _ := r.Columns["name"].(string)
	return name
}

// Ref stands for the UUID of another row we own.
type Ref struct{ Table, ID string }

// ParentRef is a column of the row named Name.
type ParentRef struct{ Table, Column, Name string }

// parentColumn returns the table and column of the parents of a table's rows, or empty strings if they need none.
func parentColumn(table string) (holder, column string) {
	switch table {
	case ACL:
		return Switch, "acls"
	case SwitchPort:
		return Switch, "ports"
	case RouterPort:
		return Router, "ports"
	case StaticRoute:
		return Router, "static_routes"
	case Policy:
		return Router, "policies"
	case LoadBalancer:
		return Router, "load_balancer"
	case HAChassis:
		return HAChassisGroup, "ha_chassis"
	}
	return "", ""
}

// ParentOf returns the set that contains a row whose external_ids name the parent.
func ParentOf(table string, externalIDs map[string]string) ParentRef {
	t, column := parentColumn(table)
	return ParentRef{Table: t, Column: column, Name: externalIDs[KeyParent]}
}

// IsNonRoot reports whether rows of a table live only as long as another row references them (ovn-nb.ovsschema,
// isRoot).
func IsNonRoot(table string) bool {
	t, _ := parentColumn(table)
	return t != "" && table != LoadBalancer
}

// owned returns a row with its owner IDs. parts identify the row among those of its owner.
func owned(table, owner, name string, columns map[string]any, parts ...string) Row {
	id := strings.Join(append([]string{Controller, owner, name}, parts...), ":")
	ids := map[string]string{KeyController: Controller, KeyOwnerType: owner, KeyPrimaryID: id}
	columns["external_ids"] = ids
	return Row{Table: table, ID: id, Columns: columns}
}

// with sets a key of external_ids.
func (r Row) with(key, value string) Row {
	r.ExternalIDs()[key] = value
	return r
}

// withParent sets the row's parent.
func (r Row) withParent(holder string) Row {
	r = r.with(KeyParent, holder)
	r.Parent = ParentOf(r.Table, r.ExternalIDs())
	return r
}

// ExternalIDs returns the external_ids column of the row.
func (r Row) ExternalIDs() map[string]string {
	ids, _ := r.Columns["external_ids"].(map[string]string)
	return ids
}

// RouterName returns the name of a shard's router. The names of its ports start with it.
func RouterName(id world.ShardID) string { return fmt.Sprintf("slb-%s-%d", id.Domain, id.Index) }

// RedirectPrefix is the prefix of the logical_port of the southbound Port_Binding rows of type chassisredirect, which
// show which chassis has claimed a shard.
const RedirectPrefix = "cr-slb-"

// RedirectPort returns a shard's logical_port of that type.
func RedirectPort(id world.ShardID) string { return "cr-" + externalPort(id) }

// ParseRedirectPort parses the output of RedirectPort.
func ParseRedirectPort(name string) (world.ShardID, bool) {
	name, prefixed := strings.CutPrefix(name, RedirectPrefix)
	name, suffixed := strings.CutSuffix(name, externalSuffix)
	at := strings.LastIndexByte(name, '-')
	if !prefixed || !suffixed || at < 0 {
		return world.ShardID{}, false
	}
	return world.ParseShard(name[:at] + "/" + name[at+1:])
}

// externalSuffix is the suffix of the name of a router's port on the segment.
const externalSuffix = "-ext"

func externalPort(id world.ShardID) string { return RouterName(id) + externalSuffix }

func joinPort(id world.ShardID) string { return RouterName(id) + "-join" }

func switchName(domain string) string { return "slb-" + domain }
