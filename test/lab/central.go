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
)

// NBSocket and SBSocket are ovsdb connection methods (ovsdb(7)) that work from every namespace.
func (l *Lab) NBSocket() string { return "unix:" + l.path(centralNetns, "nb.sock") }

// SBSocket is the southbound database's, as NBSocket.
func (l *Lab) SBSocket() string { return "unix:" + l.path(centralNetns, "sb.sock") }

// ovsEnv keeps every default path of OVS and OVN inside dir.
func ovsEnv(dir string) []string {
	var env []string
	for _, name := range []string{"OVS_RUNDIR", "OVN_RUNDIR", "OVS_DBDIR", "OVN_DBDIR", "OVS_LOGDIR", "OVN_LOGDIR"} {
		env = append(env, name+"="+dir)
	}
	return env
}

// startDatabase creates an ovsdb file from a schema (see ovnprefix.Schema) if it is not there, and serves it on <dir>/<name>.sock.
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
	args := []string{"ovsdb-server", db, "--remote=punix:" + socket, "--unixctl=" + filepath.Join(dir, name+".ctl"), "-vsyslog:off"}
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

// startCentral starts NB, SB and ovn-northd, and calls initialized as soon as the databases have their global rows. They listen on the
// management network as in a cluster, and on Unix sockets.
func (l *Lab) startCentral(ctx context.Context, initialized func()) error {
	g, gctx := errgroup.WithContext(ctx)
	for name, port := range map[string]int{"nb": nbPort, "sb": sbPort} {
		g.Go(func() error {
			return l.startDatabase(gctx, centralNetns, name, "ovn/ovn-"+name+".ovsschema", fmt.Sprintf("ptcp:%d:0.0.0.0", port))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// The databases have their one global row before others come to insert it: ovn-controller ends with SIGSEGV in a southbound
	// database without one, and ovn-nbctl 25.09 aborts if ovn-northd inserts it at the same moment.
	for _, initialize := range []func(context.Context, ...string) (string, error){l.NB, l.SB} {
		if _, err := initialize(ctx, "init"); err != nil {
			return err
		}
	}
	initialized()
	dir := l.path(centralNetns)
	_, err := proc.Start(ctx, proc.Spec{
		Name: "northd", Dir: dir, Netns: l.Netns(centralNetns), Env: ovsEnv(dir), Nice: controlNice,
		Args: []string{
			"ovn-northd", "--ovnnb-db=" + l.NBSocket(), "--ovnsb-db=" + l.SBSocket(),
			"--unixctl=" + filepath.Join(dir, "northd.ctl"), "-vsyslog:off",
		},
	})
	return err
}

// NB runs ovn-nbctl(8) on the lab's northbound database and returns what it prints.
func (l *Lab) NB(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append([]string{"ovn-nbctl", "--db=" + l.NBSocket(), "--timeout=30"}, args...)...)
}

// SB runs ovn-sbctl(8) on the lab's southbound database and returns what it prints.
func (l *Lab) SB(ctx context.Context, args ...string) (string, error) {
	return run(ctx, append([]string{"ovn-sbctl", "--db=" + l.SBSocket(), "--timeout=30"}, args...)...)
}

// Settle returns when every chassis has applied what is in the northbound database now.
func (l *Lab) Settle(ctx context.Context) error {
	_, err := l.NB(ctx, "--wait=hv", "sync")
	return err
}
