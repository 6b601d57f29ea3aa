// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"net/netip"
	"sync"

	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Standby checks whether a replica that is not the leader could lead. It writes nothing and reads only the current
// mode. Its connections to OVN's databases replicate no rows.
type Standby struct {
	facts *kube.Facts
	watch *kube.Watch
	// databases is nil if there are no databases.
	databases *ovn.Connectivity
}

// NewStandby returns a Standby for a Controller with the same Config. databases is nil if there are none. It does
// nothing before Run.
func NewStandby(cfg Config, databases *ovn.Connectivity) *Standby {
	s := &Standby{databases: databases, facts: kube.NewFacts(cfg.Convert, kube.Hooks{
		Wake: func() {}, Changed: func(world.Key) {}, Expected: func(world.Key, []netip.Addr) bool { return false },
	})}
	s.watch = kube.NewModeWatch(cfg.Kube, cfg.Clients, s.facts)
	return s
}

// Run keeps s up to date until ctx is done.
func (s *Standby) Run(ctx context.Context) {
	if s.databases == nil {
		return
	}
	var running sync.WaitGroup
	running.Go(func() { s.watch.Run(ctx) })
	running.Go(func() {
		if err := s.databases.Run(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to keep connections to the OVN databases")
		}
	})
	running.Wait()
}

// Missing returns an error that names what prevents this replica from leading: databases that the mode needs and that
// are not connected. It returns nil if nothing does.
func (s *Standby) Missing() error {
	if s.databases == nil {
		return nil
	}
	if err := s.watch.Healthy(); err != nil {
		return err
	}
	if !s.facts.Mode().Layer2() || s.facts.Interconnect() {
		return nil
	}
	return s.databases.Unreachable()
}
