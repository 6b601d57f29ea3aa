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

// Connectivity maintains connections to the databases without reading them. Replicas that are not the leader use it.
type Connectivity struct{ links []*replica }

// NewConnectivity returns a Connectivity. It does not connect before Run. Endpoints without an address are ignored.
func NewConnectivity(nb, sb Endpoint) (*Connectivity, error) {
	c := &Connectivity{}
	for _, l := range []*replica{
		{name: "northbound", endpoint: nb, schema: withoutTables(northbound(""))}, {name: "southbound", endpoint: sb,
			schema: withoutTables(southbound)},
	} {
		if l.endpoint.Address == "" {
			continue
		}
		if err := l.endpoint.check(l.name); err != nil {
			return nil, err
		}
		l.onSynced = func() {}
		c.links = append(c.links, l)
	}
	return c, nil
}

// withoutTables returns a schema with no table to replicate.
func withoutTables(schema func() (model.ClientDBModel, []watch, error)) func() (model.ClientDBModel, []watch, error) {
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

// Unreachable returns an error that names the databases that are not connected, or nil.
func (c *Connectivity) Unreachable() error { return unreachable(c.links...) }

// Unreachable returns an error that names the databases that are not connected, or nil. A database that is being read
// counts as connected unless the previous attempt to read it failed.
func (d *Dataplane) Unreachable() error { return unreachable(d.nb, d.sb) }

// Unread returns an error that names the databases whose replicas are not in sync, or nil.
func (d *Dataplane) Unread() error {
	return notInSync(d.nb, d.sb)
}

// UnreadNB is like Unread, for the northbound database alone. Nothing is written while it returns an error.
func (d *Dataplane) UnreadNB() error { return notInSync(d.nb) }

// UnreadSB is like Unread, for the southbound database alone.
func (d *Dataplane) UnreadSB() error { return notInSync(d.sb) }

func notInSync(links ...*replica) error {
	return checkReplicas("not in sync", func(l *replica) bool { return l.conn.Load() != nil }, links...)
}

func unreachable(links ...*replica) error {
	return checkReplicas(client.ErrNotConnected.Error(), func(l *replica) bool {
		return l.conn.Load() != nil || l.reading.Load() && !l.readFailed.Load()
	}, links...)
}

func checkReplicas(what string, well func(*replica) bool, links ...*replica) error {
	var errs []error
	for _, l := range links {
		if l != nil && !well(l) {
			errs = append(errs, fmt.Errorf("%s database at %s: %s", l.name, l.endpoint.Address, what))
		}
	}
	return errors.Join(errs...)
}
