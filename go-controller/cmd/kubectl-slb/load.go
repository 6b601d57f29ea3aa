// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// load reads the objects of the whole cluster. With a Service, it reads only this Service and its EndpointSlices of
// these kinds; with a key without a name, only those of the namespace.
func (c *clients) load(ctx context.Context, service *world.Key) (*objects.Objects, error) {
	return kube.LoadObjects(ctx, c.core, c.ours, service)
}

// loadServices is load for a user who may have to do with the Services of one namespace: if those of the cluster must
// not be read, "services" is in Unread, and those of the namespace of the user's context are read.
func (c *clients) loadServices(ctx context.Context) (*objects.Objects, error) {
	cluster, err := c.load(ctx, nil)
	if err != nil || !slices.Contains(cluster.Unread, "services") {
		return cluster, err
	}
	own, err := c.load(ctx, &world.Key{Namespace: c.namespace})
	if err == nil && !slices.Contains(own.Unread, "services") {
		own.Unread = append(own.Unread, "services")
	}
	return own, err
}

// decisive returns the resources on which decisions depend. Without one of them, a preview is wrong.
func decisive() []string {
	return []string{"services", "endpointslices", "nodes", "namespaces", "ipaddresspools", "l2domains", "bgppeers",
		"bgpadvertisements", "bfdprofiles", "communities", "bgpnodestatuses", "leases"}
}

// unread returns those of some resources that the user must not read.
func unread(cluster *objects.Objects, resources ...string) []string {
	return slices.DeleteFunc(slices.Clone(resources), func(r string) bool { return !slices.Contains(cluster.Unread, r) })
}

// requireRead returns an error that names those of some resources that the user must not read: they are not empty.
func requireRead(cluster *objects.Objects, resources ...string) error {
	if missing := unread(cluster, resources...); len(missing) > 0 {
		return fmt.Errorf("not read, because the API server does not allow it: %s", strings.Join(missing, ", "))
	}
	return nil
}

// loadNode reads what shows what a node carries (remaining), without Services and other nodes.
func (c *clients) loadNode(ctx context.Context, node string) (*objects.Objects, error) {
	return kube.LoadNode(ctx, c.core, c.ours, node)
}
