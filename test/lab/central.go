// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const (
	nbPort = 6641
	sbPort = 6642

	switchSchema = "openvswitch/vswitch.ovsschema"

	nbName, sbName, northdName = "nb", "sb", "northd"
)

// NBSocket returns the OVSDB connection method (ovsdb(7)) of the northbound database. It works in every namespace. With
// zones there is no such server.
func (l *Lab) NBSocket() string { return "unix:" + l.path(centralNetns, "nb.sock") }

// SBSocket is like NBSocket, for the southbound database.
func (l *Lab) SBSocket() string { return "unix:" + l.path(centralNetns, "sb.sock") }

// ovsEnv returns the environment that keeps every default path of OVS and OVN inside dir.
func ovsEnv(dir string) []string {
	var env []string
	for _, name := range []string{"OVS_RUNDIR", "OVN_RUNDIR", "OVS_DBDIR", "OVN_DBDIR", "OVS_LOGDIR", "OVN_LOGDIR"} {
		env = append(env, name+"="+dir)
	}
	return env
}

// startDatabase creates an OVSDB file from a schema (see ovnprefix.Schema) if it does not exist, and serves it on
// <dir>/<name>.sock.
func (l *Lab) startDatabase(ctx context.Context, short, name, schema string, remotes ...string) error {
	dir := l.path(short)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("start database %s: %w", name, err)
	}
	db, socket := filepath.Join(dir, name+".db"), filepath.Join(dir, name+".sock")
	if _, err := os.Stat(db); os.IsNotExist(err) {
		if _, err := run(ctx, "ovsdb-tool", "create", db, ovnprefix.Schema(schema)); err != nil {
			return fmt.Errorf("create database %s: %w", name, err)
		}
	}
	args := []string{"ovsdb-server", db, "--remote=punix:" + socket, "--unixctl=" + filepath.Join(dir, name+".ctl"),
		"-vsyslog:off"}
	for _, remote := range remotes {
		args = append(args, "--remote="+remote)
	}
	_, err := proc.Start(ctx, proc.Spec{
		Name: name, Dir: dir, Netns: l.Netns(short), Args: args, Env: ovsEnv(dir), Nice: controlNice,
		Ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})
	return err
}

// startCentral starts the cluster's NB, SB and ovn-northd.
func (l *Lab) startCentral(ctx context.Context, initialized func()) error {
	return l.startDatabases(ctx, centralNetns, "", initialized)
}

// startDatabases starts NB, SB and ovn-northd in a namespace, for a zone if zone is not empty. It calls initialized as
// soon as the databases have their global rows. The databases of a zone listen on Unix sockets only, others on the
// management network as well, as in a cluster.
func (l *Lab) startDatabases(ctx context.Context, short, zone string, initialized func()) error {
	g, gctx := errgroup.WithContext(ctx)
	for name, port := range map[string]int{"nb": nbPort, "sb": sbPort} {
		// OVN-Kubernetes expects the socket under this name.
		remotes := []string{"punix:" + l.path(short, "ovn"+name+"_db.sock")}
		if zone == "" {
			remotes = append(remotes, fmt.Sprintf("ptcp:%d:0.0.0.0", port))
		}
		g.Go(func() error { return l.startDatabase(gctx, short, name, "ovn/ovn-"+name+".ovsschema", remotes...) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// Insert the one global row of each database before any client inserts it: ovn-controller crashes with SIGSEGV on a
	// southbound database without it, and ovn-nbctl 25.09 aborts if ovn-northd inserts it at the same time.
	dir := l.path(short)
	nb, sb := "unix:"+filepath.Join(dir, "nb.sock"), "unix:"+filepath.Join(dir, "sb.sock")
	initialize := [][]string{{"ovn-nbctl", "--db=" + nb, "--timeout=30", "init"},
		{"ovn-sbctl", "--db=" + sb, "--timeout=30", "init"}}
	if zone != "" {
		initialize = append(initialize, []string{"ovn-nbctl", "--db=" + nb, "--timeout=30", "set", "NB_Global", ".",
			"name=" + zone, "options:name=" + zone})
	}
	for _, command := range initialize {
		if _, err := run(ctx, command...); err != nil {
			return err
		}
	}
	initialized()
	_, err := proc.Start(ctx, proc.Spec{
		Name: northdName, Dir: dir, Netns: l.Netns(short), Env: ovsEnv(dir), Nice: controlNice,
		Args: []string{
			"ovn-northd", "--ovnnb-db=" + nb, "--ovnsb-db=" + sb,
			"--unixctl=" + filepath.Join(dir, "northd.ctl"), "-vsyslog:off",
		},
	})
	return err
}

// NB runs ovn-nbctl(8) on the lab's northbound database and returns its output. With zones, it tries those that run
// until one has output: not every zone has all rows.
func (l *Lab) NB(ctx context.Context, args ...string) (string, error) {
	if l.state.Network.Zones() {
		for _, n := range l.liveZones() {
			if out, err := l.ZoneNB(ctx, n.Name, args...); err != nil || strings.TrimSpace(out) != "" {
				return out, err
			}
		}
		return "", nil
	}
	return run(ctx, append([]string{"ovn-nbctl", "--db=" + l.NBSocket(), "--timeout=30"}, args...)...)
}

// SB is like NB, for ovn-sbctl(8) and the southbound database.
func (l *Lab) SB(ctx context.Context, args ...string) (string, error) {
	if l.state.Network.Zones() {
		for _, n := range l.liveZones() {
			if out, err := l.zoneSB(ctx, n.Name, args...); err != nil || out != "" {
				return out, err
			}
		}
		return "", nil
	}
	return run(ctx, append([]string{"ovn-sbctl", "--db=" + l.SBSocket(), "--timeout=30"}, args...)...)
}

// zoneSB runs ovn-sbctl(8) on the southbound database of a zone and returns its output without spaces around it.
func (l *Lab) zoneSB(ctx context.Context, zone string, args ...string) (string, error) {
	out, err := run(ctx, append([]string{"ovn-sbctl", "--db=unix:" + l.path(zone, "sb.sock"), "--timeout=30"}, args...)...)
	return strings.TrimSpace(out), err
}

// Settle returns when every chassis has applied the current content of the northbound database, or of that of its zone.
func (l *Lab) Settle(ctx context.Context) error {
	_, err := l.EachNB(ctx, "--wait=hv", "sync")
	return err
}

// liveZones returns the nodes whose northbound database runs.
func (l *Lab) liveZones() []Node {
	return slices.DeleteFunc(slices.Clone(l.Nodes), func(n Node) bool { return !l.runs(n, nbName) })
}

// EachNB runs ovn-nbctl(8) on each northbound database of the lab in turn and returns the combined output.
func (l *Lab) EachNB(ctx context.Context, args ...string) (string, error) {
	if !l.state.Network.Zones() {
		return l.NB(ctx, args...)
	}
	var all strings.Builder
	for _, n := range l.liveZones() {
		out, err := l.ZoneNB(ctx, n.Name, args...)
		if err != nil {
			return "", fmt.Errorf("zone %s: %w", n.Name, err)
		}
		all.WriteString(out)
	}
	return all.String(), nil
}

// ZoneNB runs ovn-nbctl(8) on the northbound database of a node that is a zone and returns its output.
func (l *Lab) ZoneNB(ctx context.Context, node string, args ...string) (string, error) {
	return run(ctx, append([]string{"ovn-nbctl", "--db=unix:" + l.path(node, "nb.sock"), "--timeout=30"}, args...)...)
}
