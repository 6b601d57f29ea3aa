// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// ActiveChassis returns the chassis that claims a distributed gateway port, given by the port's name in the northbound
// database. It returns the empty string if not exactly one does.
func (l *Lab) ActiveChassis(ctx context.Context, port string) (string, error) {
	if l.state.Network.Zones() {
		return l.activeZone(ctx, port)
	}
	chassis, err := l.SB(ctx, "--bare", "--columns=chassis", "find", "Port_Binding", "logical_port=cr-"+port)
	if err != nil {
		return "", fmt.Errorf("active chassis of %s: %w", port, err)
	}
	id := strings.TrimSpace(chassis)
	if id == "" {
		return "", nil
	}
	name, err := l.SB(ctx, "--bare", "--columns=name", "list", "Chassis", id)
	if err != nil {
		return "", fmt.Errorf("active chassis of %s: %w", port, err)
	}
	return strings.TrimSpace(name), nil
}

// activeZone is ActiveChassis with zones: the only chassis that claims the port in its own southbound database. For up
// to a second after the port was created, until the BFD sessions of the gateways are up, several do. Zones whose
// database or ovn-controller does not run are skipped: a claim there is never released.
func (l *Lab) activeZone(ctx context.Context, port string) (string, error) {
	var active []string
	for _, n := range l.Nodes {
		if !l.runs(n, sbName) || !l.runs(n, controllerName) {
			continue
		}
		id, err := l.zoneSB(ctx, l.zoneOf(n), "--bare", "--columns=chassis", "find", "Port_Binding", "logical_port=cr-"+port)
		if err != nil {
			return "", fmt.Errorf("active chassis of %s in zone %s: %w", port, n.Name, err)
		}
		if id == "" {
			continue
		}
		name, err := l.zoneSB(ctx, l.zoneOf(n), "--bare", "--columns=name", "list", "Chassis", id)
		if err != nil {
			return "", fmt.Errorf("active chassis of %s in zone %s: %w", port, n.Name, err)
		}
		if name == n.Chassis {
			active = append(active, name)
		}
	}
	if len(active) != 1 {
		return "", nil
	}
	return active[0], nil
}

// runs reports whether a daemon of a node runs and is not frozen.
func (l *Lab) runs(n Node, daemon string) bool {
	p, err := proc.Find(l.path(n.Name), daemon)
	return err == nil && p.Alive() && !p.Stopped()
}

// ActiveNode returns the node that claims a distributed gateway port, or the empty string if not exactly one does.
func (l *Lab) ActiveNode(ctx context.Context, port string) (string, error) {
	chassis, err := l.ActiveChassis(ctx, port)
	if err != nil {
		return "", err
	}
	for _, n := range l.Nodes {
		if n.Chassis == chassis {
			return n.Name, nil
		}
	}
	return "", nil
}

// GatewayPorts returns the distributed gateway ports that have an HA chassis group, and the chassis that claims each,
// or the empty string if not exactly one does. With zones, those of return routers are omitted: no chassis of another
// zone claims them.
func (l *Lab) GatewayPorts(ctx context.Context) (map[string]string, error) {
	out, err := l.EachNB(ctx, "--bare", "--columns=name", "find", "Logical_Router_Port", "ha_chassis_group!=[]")
	if err != nil {
		return nil, fmt.Errorf("gateway ports: %w", err)
	}
	ports := map[string]string{}
	for _, port := range lines(out) {
		if _, known := ports[port]; known || strings.HasPrefix(port, "slbreturn-") {
			continue
		}
		if ports[port], err = l.ActiveChassis(ctx, port); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// Snapshot is the content of the northbound database as text, by table. Each row is one line of JSON with sorted
// columns, and rows are sorted by UUID. Columns that OVN itself reports are omitted, so that two snapshots are equal if
// and only if the database was not written in between.
type Snapshot map[string][]string

// String returns the snapshot with one heading per table, for comparisons.
func (s Snapshot) String() string {
	var b strings.Builder
	for _, table := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s\n\t%s\n", table, strings.Join(s[table], "\n\t"))
	}
	return b.String()
}

// Row is one row of the northbound database. Columns are encoded as in RFC 7047 section 5.1.
type Row map[string]json.RawMessage

// OwnedBy reports whether the row's external_ids contain k8s.ovn.org/owner-controller=controller.
func (r Row) OwnedBy(controller string) bool {
	pair, err := json.Marshal([]string{"k8s.ovn.org/owner-controller", controller})
	return err == nil && bytes.Contains(r["external_ids"], pair)
}

// reported returns the columns that OVN writes, by table.
func reported() map[string][]string {
	return map[string][]string{
		"NB_Global":           {"nb_cfg", "nb_cfg_timestamp", "sb_cfg", "sb_cfg_timestamp", "hv_cfg", "hv_cfg_timestamp"},
		"Logical_Switch_Port": {"up", "dynamic_addresses"},
		"BFD":                 {"status"},
		"Connection":          {"is_connected", "status"},
	}
}

// heartbeat matches what OVN-Kubernetes writes to NB_Global every 30 s.
func heartbeat() *regexp.Regexp {
	return regexp.MustCompile(`,\["e2e_timestamp","\d+"\]|\["e2e_timestamp","\d+"\],?`)
}

// SnapshotNB reads the rows for which keep returns true. A nil keep keeps all. Tables without such rows are omitted.
func (l *Lab) SnapshotNB(ctx context.Context, keep func(table string, row Row) bool) (Snapshot, error) {
	snapshot := Snapshot{}
	for _, z := range l.liveZones() {
		out, err := run(ctx, "ovsdb-client", "--format=json", "dump", l.socket(z, nbName), "OVN_Northbound")
		if err == nil {
			err = snapshot.add(out, keep)
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot of the northbound database: %w", err)
		}
	}
	return snapshot, nil
}

// add adds the rows of a dump for which keep returns true.
func (s Snapshot) add(out string, keep func(table string, row Row) bool) error {
	decoder, beat := json.NewDecoder(strings.NewReader(out)), heartbeat()
	for decoder.More() {
		var dump struct {
			Caption  string              `json:"caption"`
			Headings []string            `json:"headings"`
			Data     [][]json.RawMessage `json:"data"`
		}
		if err := decoder.Decode(&dump); err != nil {
			return err
		}
		table := strings.TrimSuffix(dump.Caption, " table")
		for _, values := range dump.Data {
			row := Row{}
			for i, column := range dump.Headings {
				if !slices.Contains(reported()[table], column) {
					row[column] = beat.ReplaceAll(values[i], nil)
				}
			}
			if keep != nil && !keep(table, row) {
				continue
			}
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			s[table] = append(s[table], string(text))
		}
		slices.Sort(s[table])
	}
	return nil
}
