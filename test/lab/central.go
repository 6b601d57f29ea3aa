// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

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
		Name: name, Dir: dir, Netns: l.Netns(short), Args: args, Env: ovsEnv(dir), Nice: proc.Machine,
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

// startDatabases starts NB, SB and ovn-northd of a zone. It calls initialized as soon as the databases have their
// global rows. With interconnect the databases listen on Unix sockets only, otherwise on the management network as
// well, as in a cluster.
func (l *Lab) startDatabases(ctx context.Context, z zone, initialized func()) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, name := range []string{nbName, sbName} {
		g.Go(func() error { return l.serveDatabase(gctx, z, name) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// Insert the one global row of each database before any client inserts it: ovn-controller crashes with SIGSEGV on a
	// southbound database without it, and ovn-nbctl 25.09 aborts if ovn-northd inserts it at the same time.
	initialize := nbctl{"init"}
	if l.state.Network.Zones() {
		initialize.do("set", "NB_Global", ".", "name="+z.name, "options:name="+z.name)
	}
	if _, err := l.zoneNB(ctx, z, initialize...); err != nil {
		return err
	}
	if _, err := l.zoneSB(ctx, z, "init"); err != nil {
		return err
	}
	initialized()
	return l.startNorthd(ctx, z)
}

// serveDatabase starts a database of a zone, nbName or sbName.
func (l *Lab) serveDatabase(ctx context.Context, z zone, name string) error {
	// OVN-Kubernetes expects the socket under this name.
	remotes := []string{"punix:" + l.path(z.netns, "ovn"+name+"_db.sock")}
	if !l.state.Network.Zones() {
		remotes = append(remotes, fmt.Sprintf("ptcp:%d:0.0.0.0", map[string]int{nbName: nbPort, sbName: sbPort}[name]))
	}
	return l.startDatabase(ctx, z.netns, name, "ovn/ovn-"+name+".ovsschema", remotes...)
}

// monitorScript restarts a command that a programming error has ended, as the option --monitor of OVN's daemons does,
// which only a daemon that detaches has. ovn-northd 26.03.0 and 26.03.1 abort if a router is deleted and another one
// created at the same time.
const monitorScript = `while :; do
	"$@" && exit
	case $? in 132 | 134 | 135 | 136 | 139) ;; *) exit ;; esac
done`

// startNorthd starts ovn-northd of a zone.
func (l *Lab) startNorthd(ctx context.Context, z zone) error {
	dir := l.path(z.netns)
	_, err := proc.Start(ctx, proc.Spec{
		Name: northdName, Dir: dir, Netns: l.Netns(z.netns), Env: ovsEnv(dir), Nice: proc.Machine,
		Args: []string{
			"sh", "-c", monitorScript, "sh",
			"ovn-northd", "--ovnnb-db=" + l.socket(z, nbName), "--ovnsb-db=" + l.socket(z, sbName),
			"--pidfile=" + filepath.Join(dir, "ovn-northd.pid"), "-vsyslog:off",
		},
	})
	return err
}
