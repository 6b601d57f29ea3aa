// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"fmt"
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

// NewStandby returns a Standby for a Controller with the given options. It does nothing before Run.
func NewStandby(o Options) (*Standby, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("options of the standby: %w", err)
	}
	clients, err := kube.NewClients(o.Config)
	if err != nil {
		return nil, err
	}
	s := &Standby{facts: kube.NewFacts(o.convert(), kube.Hooks{
		Wake: func() {}, Changed: func(world.Key) {}, Expected: func(world.Key, []netip.Addr) bool { return false },
	})}
	s.watch = kube.NewModeWatch(o.Kube, clients, s.facts)
	if o.NetworkType != OpenShiftSDN && o.NB.Address != "" {
		s.databases, err = ovn.NewConnectivity(ovn.Endpoint(o.NB), ovn.Endpoint(o.SB))
	}
	return s, err
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
