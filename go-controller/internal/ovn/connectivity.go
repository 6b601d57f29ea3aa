// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"fmt"

	"github.com/ovn-org/libovsdb/client"
	"github.com/ovn-org/libovsdb/model"
	"golang.org/x/sync/errgroup"
)

// Connectivity keeps connections to the databases without reading them: what a replica that does not lead has.
type Connectivity struct{ links []*link }

// NewConnectivity returns connections that are not made before Run. An endpoint without an address is left out.
func NewConnectivity(nb, sb Endpoint) (*Connectivity, error) {
	c := &Connectivity{}
	for _, l := range []*link{
		{name: "northbound", endpoint: nb, schema: unread(northbound)}, {name: "southbound", endpoint: sb, schema: unread(southbound)},
	} {
		if l.endpoint.Address == "" {
			continue
		}
		if err := l.endpoint.check(l.name); err != nil {
			return nil, err
		}
		l.up = func() {}
		c.links = append(c.links, l)
	}
	return c, nil
}

// unread is a schema of which no row is read.
func unread(schema func() (model.ClientDBModel, []watch, error)) func() (model.ClientDBModel, []watch, error) {
	return func() (model.ClientDBModel, []watch, error) {
		db, _, err := schema()
		return db, nil, err
	}
}

// Run connects to the databases and keeps the connections until ctx ends.
func (c *Connectivity) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range c.links {
		g.Go(func() error { return l.run(ctx) })
	}
	return g.Wait()
}

// Unreachable names the databases that are not connected; nil if all are.
func (c *Connectivity) Unreachable() error { return unreachable(c.links...) }

// Unreachable names the databases that are not connected, nil if all are. One that is being read is connected, unless the last time to read it failed.
func (d *Dataplane) Unreachable() error { return unreachable(d.nb, d.sb) }

// Unread names the databases whose replicas are not in sync; nil if all are.
func (d *Dataplane) Unread() error {
	return lacking("not in sync", func(l *link) bool { return l.live.Load() != nil }, d.nb, d.sb)
}

func unreachable(links ...*link) error {
	return lacking(client.ErrNotConnected.Error(), func(l *link) bool {
		return l.live.Load() != nil || l.reading.Load() && !l.unreadable.Load()
	}, links...)
}

func lacking(what string, well func(*link) bool, links ...*link) error {
	var errs []error
	for _, l := range links {
		if l != nil && !well(l) {
			errs = append(errs, fmt.Errorf("%s database at %s: %s", l.name, l.endpoint.Address, what))
		}
	}
	return errors.Join(errs...)
}
