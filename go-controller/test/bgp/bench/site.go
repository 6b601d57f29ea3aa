// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ip"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/routes"
)

const nodeASN, routerASN = 64500, 64512

func routerAddr() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, 1}) }

// source returns an address of the node.
func source(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 1, byte(1 + i)}) }

// site consists of two namespaces with a link between them: the router's and the node's.
type site struct {
	dir, name string
	progress  io.Writer
	router    frr.Router
	// save stores the results so far.
	save func() error
}

func (s *site) logf(format string, args ...any) { fmt.Fprintf(s.progress, format+"\n", args...) }

func (s *site) node() string { return s.name + "-node" }

// build creates the namespaces and starts the router, which has each source of the node as a neighbor.
func (s *site) build(ctx context.Context, sources int) error {
	if os.Geteuid() != 0 {
		return errors.New("the benchmark makes network namespaces: run it as root")
	}
	s.router = frr.Router{Name: s.name + "-router", Dir: filepath.Join(s.dir, "router"), Netns: s.name + "-router"}
	lines := []string{
		"netns add " + s.router.Netns, "netns add " + s.node(),
		fmt.Sprintf("link add eth0 netns %s type veth peer name eth0 netns %s", s.router.Netns, s.node()),
	}
	if err := ip.Batch(ctx, "", lines...); err != nil {
		return err
	}
	if err := ip.Batch(ctx, s.router.Netns, "link set lo up", "link set eth0 up",
		fmt.Sprintf("addr add %s/16 dev eth0", routerAddr())); err != nil {
		return err
	}
	lines = []string{"link set lo up", "link set eth0 up"}
	config := []string{
		fmt.Sprintf("router bgp %d", routerASN), " bgp router-id 10.0.0.1", " no bgp ebgp-requires-policy",
		" bgp bestpath as-path multipath-relax",
	}
	for i := range sources {
		lines = append(lines, fmt.Sprintf("addr add %s/16 dev eth0", source(i)))
		config = append(config, fmt.Sprintf(" neighbor %s remote-as %d", source(i), nodeASN))
	}
	if err := ip.Batch(ctx, s.node(), lines...); err != nil {
		return err
	}
	if err := s.router.Start(ctx); err != nil {
		return err
	}
	return s.router.Configure(ctx, append(config, " address-family ipv4 unicast", "  maximum-paths 256")...)
}

// remove deletes everything that build created.
func (s *site) remove(ctx context.Context) error {
	err := proc.KillRecorded(s.dir)
	return errors.Join(err, ip.Batch(ctx, "", "netns del "+s.router.Netns, "netns del "+s.node()), os.RemoveAll(s.dir))
}

// await calls f until it returns nil, or the context ends.
func await(ctx context.Context, every time.Duration, f func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// kernel counts the routes in the router's kernel, as reported by the kernel itself.
type kernel struct {
	mu     sync.Mutex
	routes int
	err    error // changes may have been missed
	// moved receives a token when the count has changed.
	moved chan struct{}
}

// watch counts routes until the context ends.
func (s *site) watch(ctx context.Context) (*kernel, error) {
	k := &kernel{moved: make(chan struct{}, 1)}
	return k, routes.Watch(ctx, s.router.Netns, k.take)
}

func (k *kernel) take(c routes.Change, err error) {
	if err == nil && !strings.HasPrefix(c.Prefix.String(), "100.") {
		return
	}
	k.mu.Lock()
	switch {
	case err != nil:
		k.err = err
	case c.Deleted:
		k.routes--
	default:
		k.routes++
	}
	k.mu.Unlock()
	select {
	case k.moved <- struct{}{}:
	default:
	}
}

// reach waits until the kernel has n routes and returns the time at which it did.
func (k *kernel) reach(ctx context.Context, n int) (time.Time, error) {
	for {
		k.mu.Lock()
		now, err := k.routes, k.err
		k.mu.Unlock()
		if err != nil {
			return time.Time{}, fmt.Errorf("the router's routes: %w", err)
		}
		if now == n {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("the router's kernel has %d routes, want %d: %w", now, n, ctx.Err())
		case <-k.moved:
		}
	}
}
