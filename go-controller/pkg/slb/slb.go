// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/controller"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/shim"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/zones"
)

// Controller allocates addresses to Services and programs OVN to announce them.
type Controller struct{ controller *controller.Controller }

// New returns a Controller that does nothing before Run. An error about an invalid option names the option.
func New(o Options) (*Controller, error) {
	config, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("options of the controller: %w", err)
	}
	c, err := controller.New(config)
	return &Controller{c}, err
}

// Run runs the controller until ctx is done. It waits for servers that cannot be reached.
func (c *Controller) Run(ctx context.Context) error { return c.controller.Run(ctx) }

// Alive returns an error if a loop of the controller had no heartbeat for longer than stall. Only a restart helps then.
// stall must be well above five seconds. A loop that waits for the API server or for a database is alive.
func (c *Controller) Alive(stall time.Duration) error { return c.controller.Alive(stall) }

// Healthy returns an error that describes what the controller is waiting for. It returns nil once the controller has
// read everything it needs and made its first decision, and as long as it is connected to the databases that the
// current mode needs.
func (c *Controller) Healthy() error { return c.controller.Healthy() }

// Missing returns an error that names the databases that the current mode needs and that are not connected. It returns
// nil if there are none, and before the first decision, when the mode is not known. A leader without these databases
// keeps other replicas, which may be connected to them, from leading.
func (c *Controller) Missing() error { return c.controller.Missing() }

// Standby checks whether a replica that is not the leader could lead. It writes nothing and reads only the current
// mode. Its connections to OVN's databases replicate no rows.
type Standby struct{ standby *controller.Standby }

// NewStandby returns a Standby for a Controller with the given options. It does nothing before Run.
func NewStandby(o Options) (*Standby, error) {
	config, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("options of the standby: %w", err)
	}
	var databases *ovn.Connectivity
	if o.NetworkType != OpenShiftSDN && o.NB.Address != "" {
		databases, err = ovn.NewConnectivity(ovn.Endpoint(o.NB), ovn.Endpoint(o.SB))
	}
	return &Standby{controller.NewStandby(config, databases)}, err
}

// Run keeps s up to date until ctx is done.
func (s *Standby) Run(ctx context.Context) { s.standby.Run(ctx) }

// Missing returns an error that names what prevents this replica from leading: databases that the mode needs and that
// are not connected. It returns nil if nothing does.
func (s *Standby) Missing() error { return s.standby.Missing() }

// maxPublishedBackends is the limit of backends of a Service with interconnect. With more, a ServicePlan may be larger
// than what the API server stores (1.5 MiB); a backend takes some 60 to 120 bytes and up to two slots, which zones.Fit
// omits if need be.
const maxPublishedBackends = 8000

// publishedTogether is how many ServicePlans of one namespace are written before those of others that have changed
// meanwhile. A tenant can have thousands of Services with the same pods.
const publishedTogether = 200

// config converts the options to the configuration of the controller. An error names the invalid option.
func (o *Options) config() (controller.Config, error) {
	if err := o.validate(); err != nil {
		return controller.Config{}, err
	}
	clients, err := kube.NewClients(o.Config)
	if err == nil {
		clients.ClaimNamespace = o.Namespace
		err = clients.UseFRR(o.Config, o.FRRK8sNamespace)
	}
	noDatabase := o.NetworkType != OpenShiftSDN && o.NB.Address == ""
	maxBackends := cmp.Or(o.MaxServiceBackends, DefaultMaxServiceBackends)
	if noDatabase {
		maxBackends = min(maxBackends, maxPublishedBackends)
	}
	return controller.Config{
		Kube: o.Kube, Clients: clients, Convert: o.convert(), Registerer: o.Registerer,
		Network: func(hooks controller.Hooks) (*controller.Network, error) { return o.network(clients, hooks) },
		Cluster: world.Cluster{
			ClusterSubnets: o.ClusterSubnets, ServiceSubnets: o.ServiceSubnets, OpenShiftSDN: o.NetworkType == OpenShiftSDN,
			Limits: world.Limits{ServiceBackends: maxBackends, Backends: cmp.Or(o.MaxBackends, DefaultMaxBackends),
				NamespaceBackends: cmp.Or(o.MaxNamespaceBackends, DefaultMaxNamespaceBackends)},
			NoDatabase: noDatabase,
		},
	}, err
}

// network returns the network that the options select. Without a northbound database, it is that of a cluster with
// interconnect.
func (o *Options) network(clients *kube.Clients, hooks controller.Hooks) (*controller.Network, error) {
	switch {
	case o.NetworkType == OpenShiftSDN:
		d := shim.New(shim.Options{Nodes: o.Kube.CoreV1().Nodes(), Changed: hooks.Changed, Drifted: hooks.Resync,
			Confirmed: hooks.Translated, Repeat: hooks.Repeat})
		return &controller.Network{Dataplane: d, Observer: d}, nil
	case o.NB.Address == "":
		p := zones.New(zones.Options{Clients: clients, Changed: hooks.Changed, Drifted: hooks.Drifted,
			Progress: hooks.Progress})
		return &controller.Network{Dataplane: p, Observer: p, Zones: p, NamespaceBatch: publishedTogether}, nil
	}
	d, err := ovn.New(ovn.Options{
		NB: ovn.Endpoint(o.NB), SB: ovn.Endpoint(o.SB),
		Changed: controller.OVNEvents(hooks), Transacted: hooks.Transacted, Translated: hooks.Translated,
		Fence: o.Fence,
	})
	if err != nil {
		return nil, err
	}
	return controller.OVN(d), nil
}
