// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/ovn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/shim"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// NetworkType is what carries the cluster's network, as OpenShift calls it.
type NetworkType string

// The network types that are served. The zero value stands for OVNKubernetes.
const (
	OVNKubernetes NetworkType = "OVNKubernetes"
	OpenShiftSDN  NetworkType = "OpenShiftSDN"
)

// Validate names a type that is not served.
func (t NetworkType) Validate() error {
	switch t {
	case "", OVNKubernetes, OpenShiftSDN:
		return nil
	}
	return fmt.Errorf("network type %q is neither %s nor %s", string(t), OVNKubernetes, OpenShiftSDN)
}

// DetectNetworkType waits until the API server says which network the cluster has: OpenShiftSDN where
// OpenShift says so, or else OVNKubernetes.
func DetectNetworkType(ctx context.Context, client kubernetes.Interface, config *rest.Config) (NetworkType, error) {
	clients, err := kube.NewClients(config)
	if err != nil {
		return "", err
	}
	ticker := time.NewTicker(identityPause)
	defer ticker.Stop()
	for {
		text, err := kube.NetworkType(ctx, client, clients)
		switch {
		case err == nil && NetworkType(text) == OpenShiftSDN:
			return OpenShiftSDN, nil
		case err == nil:
			return OVNKubernetes, nil
		}
		klog.ErrorS(err, "Waiting for the API server")
		select {
		case <-ctx.Done():
			return "", err
		case <-ticker.C:
		}
	}
}

// network is the dataplane of layer 2 with what it knows.
type network interface {
	dataplane.Dataplane
	// Run keeps it up to date until the context ends; Synced is closed once it knows enough.
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	// Observe adds to a snapshot what only the network knows.
	Observe(w *world.Snapshot)
	// Unreachable names the databases that it needs and is not connected to, Unread those whose contents it does not
	// know now; nil for none.
	Unreachable() error
	Unread() error
}

// newNetwork returns the network of the options, nil for none.
func (c *Controller) newNetwork() (network, error) {
	o := &c.options
	switch {
	case o.NetworkType == OpenShiftSDN:
		return shim.New(shim.Options{Nodes: o.Kube.CoreV1().Nodes(), Changed: c.wakeWhole, Drifted: c.drifted}), nil
	case o.NB.Address == "":
		return nil, nil
	}
	d, err := ovn.New(ovn.Options{
		NB: ovn.Endpoint(o.NB), SB: ovn.Endpoint(o.SB),
		Changed: c.event, Transacted: c.transacted, Fence: o.Fence,
	})
	if err != nil {
		return nil, err
	}
	return &ovnNetwork{Dataplane: d}, nil
}

// ovnNetwork is OVN with what its databases told last.
type ovnNetwork struct {
	*ovn.Dataplane
	carriers map[world.ShardID]world.Carrier
	bridges  map[string]world.Bridges
}

// Observe adds who carries what and who has which bridges. While the connection is down the order of gateways and
// the bridges that were seen last stand, or every gateway would be chosen anew; who carries a shard is not known.
func (n *ovnNetwork) Observe(w *world.Snapshot) {
	if seen := n.Carriers(); seen != nil {
		n.carriers = seen
	} else {
		n.carriers = maps.Clone(n.carriers)
		for shard, c := range n.carriers {
			c.Active, c.Settled = "", false
			n.carriers[shard] = c
		}
	}
	w.Carriers = n.carriers
	if seen := n.Bridges(); seen != nil {
		n.bridges = seen
	}
	w.Bridges = n.bridges
	w.Announced = n.Announced(unclear(w))
	w.Misplaced = n.Misplaced()
}

// unclear are the Services whose statuses don't say whether each of their addresses is announced. That
// matters only where guards are.
func unclear(w *world.Snapshot) []world.Key {
	if !slices.ContainsFunc(w.Nodes, func(n *world.Node) bool { return n.Guarded }) {
		return nil
	}
	var keys []world.Key
	for _, s := range w.Services {
		if s.Contested || len(s.ExternalIPs) > 0 {
			keys = append(keys, s.Key)
		}
	}
	return keys
}
