// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"slices"

	"github.com/ovn-org/libovsdb/client"
	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/nbdb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/rows"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn/sbdb"
)

const (
	nbGlobal    = "NB_Global"
	portBinding = "Port_Binding"
	chassis     = "Chassis"
)

// watch is a table and the rows of it to replicate: those that match any condition, or all rows if there is no
// condition. A large cluster has 100,000 logical ports, but we need only a few hundred rows of other owners.
type watch struct {
	table string
	where []ovsdb.Condition
}

func ownedCondition() ovsdb.Condition {
	return ovsdb.NewCondition("external_ids", ovsdb.ConditionIncludes, pair(rows.KeyController, rows.Controller))
}

func columnEquals(column, value string) ovsdb.Condition {
	return ovsdb.NewCondition(column, ovsdb.ConditionEqual, value)
}

// ownTables returns the tables that contain rows we own, including those of earlier versions.
func ownTables() []string {
	return []string{
		rows.ACL, rows.AddressSet, rows.BFD, rows.Copp, rows.HAChassis, rows.HAChassisGroup, rows.LoadBalancer, rows.Meter,
		rows.MeterBand, rows.Policy, rows.Router, rows.RouterPort, rows.StaticRoute, rows.Switch, rows.SwitchPort,
	}
}

// serviceTables returns the tables that contain rows of Services.
func serviceTables() []string { return []string{rows.LoadBalancer, rows.ACL} }

// northbound returns the schema and the watches of the northbound database of a zone, or of the whole cluster.
func northbound(zone string) func() (model.ClientDBModel, []watch, error) {
	return func() (model.ClientDBModel, []watch, error) { return northboundOf(zone) }
}

func northboundOf(zone string) (model.ClientDBModel, []watch, error) {
	db, err := nbdb.FullDatabaseModel()
	if err != nil {
		return db, nil, err
	}
	key := func(k string) model.ClientIndex {
		return model.ClientIndex{Columns: []model.ColumnKey{{Column: "external_ids", Key: k}}}
	}
	indexes := map[string][]model.ClientIndex{}
	watches := []watch{{table: nbGlobal}}
	for _, table := range ownTables() {
		indexes[table] = []model.ClientIndex{key(rows.KeyPrimaryID), key(rows.KeyNode)}
		w := watch{table: table, where: []ovsdb.Condition{ownedCondition()}}
		switch table {
		case rows.Router:
			w.where = append(w.where, columnEquals("name", rows.ClusterRouter))
		case rows.Switch:
			w.where = append(w.where, columnEquals("name", rows.JoinSwitch))
			if zone != "" {
				w.where = append(w.where, columnEquals("name", rows.ExternalSwitchPrefix+zone))
			}
		case rows.RouterPort:
			w.where = nil // rows of other owners provide the join addresses
		}
		watches = append(watches, w)
	}
	for _, table := range serviceTables() {
		indexes[table] = append(indexes[table], key(rows.KeyService))
	}
	db.SetIndexes(indexes)
	return db, watches, nil
}

func southbound() (model.ClientDBModel, []watch, error) {
	db, err := sbdb.FullDatabaseModel()
	return db, []watch{
		{table: portBinding, where: []ovsdb.Condition{columnEquals("type", "chassisredirect")}},
		{table: chassis},
		{table: rows.AddressSet, where: []ovsdb.Condition{columnEquals("name", rows.RevisionSet)}},
	}, err
}

// monitor returns a monitor request for the given watches. It requests only the columns of the models, because newer
// servers have more. With this method, the client drops a connection when it receives an update that does not fit its
// replica, and it decodes the reply, which is the whole database, from a single copy. With monitor_cond_since it does
// neither.
func monitor(c client.Client, watches []watch) (*client.Monitor, error) {
	m := c.NewMonitor()
	m.Method = ovsdb.ConditionalMonitorRPC
	for _, w := range watches {
		columns, err := view{c.Cache()}.columns(w.table)
		if err != nil {
			return nil, err
		}
		m.Tables = append(m.Tables, client.TableMonitor{Table: w.table, Conditions: slices.Clone(w.where), Fields: columns})
	}
	return m, nil
}
