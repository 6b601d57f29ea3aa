// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

// replica is a controller process. It is a standby until it leads.
type replica struct {
	*options
	// config is the client configuration for all replicas. It has no fence.
	config  *rest.Config
	metrics prometheus.Registerer
	health  *leaderelection.HealthzAdaptor

	standby atomic.Pointer[slb.Standby]
	current atomic.Pointer[slb.Controller]
}

// alive implements the liveness probe. It returns an error if a restart helps. A standby is alive.
func (r *replica) alive() error {
	if err := r.health.Check(nil); err != nil {
		return err
	}
	if c := r.current.Load(); c != nil {
		return c.Alive(r.stallTimeout)
	}
	return nil
}

// ready implements the readiness probe. It returns nil if the leader is healthy or a standby can lead.
func (r *replica) ready() error {
	if c := r.current.Load(); c != nil {
		return c.Healthy()
	}
	return r.missing()
}

// missing returns an error that describes what prevents this replica from leading, nil for nothing.
func (r *replica) missing() error {
	if c := r.current.Load(); c != nil {
		return c.Missing()
	}
	if s := r.standby.Load(); s != nil {
		return s.Missing()
	}
	return errors.New("starting")
}

func (r *replica) run(ctx context.Context) error {
	var err error
	if r.networkType, err = r.detect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	standing, end := context.WithCancel(ctx)
	defer end()
	if r.leaderElect {
		o, err := r.controller(r.config, nil)
		if err != nil {
			return err
		}
		s, err := slb.NewStandby(o)
		if err != nil {
			return err
		}
		r.standby.Store(s)
		go s.Run(standing)
	}
	e := &election{options: r.options, config: r.config, missing: r.missing, health: r.health}
	e.work = func(ctx context.Context, config *rest.Config, fence func() error) error {
		o, err := r.controller(config, fence)
		if err != nil {
			return err
		}
		o.Registerer = r.metrics
		c, err := slb.New(o)
		if err != nil {
			return err
		}
		r.current.Store(c)
		end()
		return c.Run(ctx)
	}
	return e.run(ctx)
}

// detect returns the network type from the options, otherwise from the API server.
func (r *replica) detect(ctx context.Context) (string, error) {
	if r.networkType != "" {
		return r.networkType, nil
	}
	client, err := kubernetes.NewForConfig(protobuf(r.config))
	if err != nil {
		return "", fmt.Errorf("client of the API server: %w", err)
	}
	network, err := slb.DetectNetworkType(ctx, client, r.config)
	return string(network), err
}

// controller returns the options of a controller whose clients use config.
func (r *replica) controller(config *rest.Config, fence func() error) (slb.Options, error) {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return slb.Options{}, fmt.Errorf("client of the API server: %w", err)
	}
	pods, err := parseSubnets(r.clusterSubnets)
	if err != nil {
		return slb.Options{}, fmt.Errorf("--%s: %w", flagClusterSubnets, err)
	}
	services, err := parseSubnets(r.serviceSubnets)
	if err != nil {
		return slb.Options{}, fmt.Errorf("--%s: %w", flagServiceCIDRs, err)
	}
	return slb.Options{
		Kube:                     client,
		Config:                   config,
		NetworkType:              slb.NetworkType(r.networkType),
		NB:                       r.nb,
		SB:                       r.sb,
		ClusterSubnets:           pods,
		ServiceSubnets:           services,
		RequireClass:             r.requireClass,
		LoadBalancerClasses:      r.loadBalancerClasses(),
		IgnoreMetalLBAnnotations: !r.metalLBAnnotations,
		MaxServiceBackends:       r.maxBackends,
		MaxNamespaceBackends:     r.maxNamespaceBackends,
		MaxBackends:              r.maxTotalBackends,
		DrainTaints:              parseKeys(r.drainTaints),
		FRRK8sNamespace:          r.frrNamespace,
		Namespace:                r.leaseNamespace,
		Disabled:                 !r.enabled,
		Fence:                    fence,
	}, nil
}
