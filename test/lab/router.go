// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const frrDaemons = "/usr/lib/frr"

// outsidePorts are the veths of the router and the clients.
func (l *Lab) outsidePorts() []port {
	return []port{
		l.attach(routerNetns, "eth-lan", LAN(), "router-lan", LAN().Host(routerHost)...),
		l.attach(routerNetns, "eth-prov", Provider(), "router-prov", Provider().Host(routerHost)...),
		l.attach(routerNetns, "eth-dmz", DMZ(), "router-dmz", DMZ().Host(routerHost)...),
		l.attach(routerNetns, "eth-tagged", Tagged(), "router-tagged", Tagged().Host(routerHost)...),
		l.attach(routerNetns, "eth-beyond", Beyond(), "router-beyond", Beyond().Host(routerHost)...),
		l.attach(clientNetns, "eth0", Provider(), "client", withLengthOf(Provider().Subnets, ClientAddresses())...),
		l.attach(dmzNetns, "eth0", DMZ(), "dmz", withLengthOf(DMZ().Subnets, DMZAddresses())...),
		l.attach(taggedNetns, "eth0", Tagged(), "tagged", withLengthOf(Tagged().Subnets, TaggedAddresses())...),
		l.attach(remoteNetns, "eth0", Beyond(), "remote", withLengthOf(Beyond().Subnets, RemoteAddresses())...),
		l.attach(centralNetns, "eth-mgmt", Management(), "cen", Management().Host(centralHost)...),
	}
}

// outsideRoutes gives the clients the router as their default next hop, and makes the router forward.
func (l *Lab) outsideRoutes(ctx context.Context) error {
	if err := setSysctls(l.Netns(routerNetns), map[string]string{
		"net/ipv4/ip_forward":          "1",
		"net/ipv6/conf/all/forwarding": "1",
	}); err != nil {
		return err
	}
	for netns, s := range map[string]Segment{clientNetns: Provider(), dmzNetns: DMZ(), taggedNetns: Tagged(), remoteNetns: Beyond()} {
		if err := ipBatch(ctx, l.Netns(netns), defaultRoutes(s.Host(routerHost))); err != nil {
			return err
		}
	}
	return nil
}

// startRouter starts FRR: zebra, bgpd and bfdd, by hand, for the packaged service knows one instance a machine only.
// It forwards between connected segments; sessions are added by those who need them, with vtysh.
func (l *Lab) startRouter(ctx context.Context) error {
	dir := l.path(routerNetns)
	if err := frrDirectory(dir); err != nil {
		return fmt.Errorf("start router: %w", err)
	}
	base := []string{
		"-N", l.Name, "-u", "frr", "-g", "frr", "-z", filepath.Join(dir, "zserv.api"), "--vty_socket", dir,
		"-A", "127.0.0.1", "-P", "0", "--log", "stdout",
	}
	extra := map[string][]string{
		"zebra": nil,
		"bgpd":  {"-p", "179"},
		"bfdd":  {"--bfdctl", filepath.Join(dir, "bfdd.sock")},
	}
	start := func(ctx context.Context, daemon string) error {
		args := append([]string{filepath.Join(frrDaemons, daemon)}, base...)
		args = append(args, "-f", filepath.Join(dir, "frr.conf"), "-i", filepath.Join(dir, daemon+".pid"))
		_, err := proc.Start(ctx, proc.Spec{
			Name: daemon, Dir: dir, Netns: l.Netns(routerNetns), Args: append(args, extra[daemon]...),
			Ready: func(context.Context) error { _, err := os.Stat(filepath.Join(dir, daemon+".vty")); return err },
		})
		return err
	}
	if err := start(ctx, "zebra"); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return start(gctx, "bgpd") })
	g.Go(func() error { return start(gctx, "bfdd") })
	return g.Wait()
}

// frrDirectory makes a directory that belongs to the user frr, for FRR refuses to run as root.
func frrDirectory(dir string) error {
	frr, err := user.Lookup("frr")
	if err != nil {
		return fmt.Errorf("user of package frr: %w", err)
	}
	uid, _ := strconv.Atoi(frr.Uid) // On Linux both are numbers.
	gid, _ := strconv.Atoi(frr.Gid)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	conf := filepath.Join(dir, "frr.conf")
	if err := os.WriteFile(conf, []byte("hostname router\n"), 0o640); err != nil {
		return err
	}
	for _, path := range []string{dir, conf} {
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
	}
	return nil
}
