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

// NetworkType is the type of the cluster network, in OpenShift's terms.
type NetworkType string

// The supported network types. The zero value means OVNKubernetes.
const (
	OVNKubernetes NetworkType = "OVNKubernetes"
	OpenShiftSDN  NetworkType = "OpenShiftSDN"
)

// Validate returns an error if the network type is not supported.
func (t NetworkType) Validate() error {
	switch t {
	case "", OVNKubernetes, OpenShiftSDN:
		return nil
	}
	return fmt.Errorf("network type %q is neither %s nor %s", string(t), OVNKubernetes, OpenShiftSDN)
}

// DetectNetworkType waits for the API server and returns the network type of the cluster: OpenShiftSDN if OpenShift
// reports it, otherwise OVNKubernetes.
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

// network is the layer 2 dataplane with its observed state.
type network interface {
	dataplane.Dataplane
	// Run keeps the observed state up to date until ctx is done. Synced is closed after the initial read.
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	// Observe adds the state that only the network can observe to a snapshot.
	Observe(w *world.Snapshot)
	// Unreachable returns an error that names the required databases that are not connected. Unread returns one that
	// names the databases whose current contents are not known. Both return nil if there are none.
	Unreachable() error
	Unread() error
}

// newNetwork returns the network that the options select, or nil if there is none.
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

// ovnNetwork is OVN with the state last observed in its databases.
type ovnNetwork struct {
	*ovn.Dataplane
	carriers map[world.ShardID]world.Carrier
	bridges  map[string]world.Bridges
}

// Observe adds the carrier of each shard and the bridges of each node. While the connection is down, it keeps the order
// of gateways and the bridges that were observed last. Otherwise every gateway would be selected again. The carrier of
// a shard is unknown during that time.
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

// unclear returns the Services whose statuses do not show whether each of their addresses is announced. This matters
// only if guards run.
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
