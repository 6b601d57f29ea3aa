// SPDX-License-Identifier: Apache-2.0

// Package subject runs the program that a benchmark measures, as in a cluster, and reads its readiness, metrics and
// resource usage.
package subject

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/scrape"
)

const manifests = "dist/manifests"

// PoolAndDomain is a pool with room for all Services and the L2 domain that advertises it.
const PoolAndDomain = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: wide}
spec: {addresses: ["10.61.0.0/16"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: wide}
spec: {physicalNetwork: physnet, ipAddressPools: [wide], subnets: [{cidr: 10.60.0.0/15, gateway: 10.60.0.1}]}
`

// Cluster is the environment in which a controller runs.
type Cluster struct {
	// Program is the path of ovnkube-slb, Dir the directory of its logs.
	Program, Dir string
	Plane        *controlplane.ControlPlane
	// ClusterSubnets is the value of the flag. NB and SB are the addresses of the databases. SB may be empty.
	ClusterSubnets, NB, SB string

	starts int
	// scraper reads metrics. It is nil until the first process is started.
	scraper *scrape.Scraper
}

// FastAPIServer returns arguments that run kube-apiserver without the cluster IP allocator of Kubernetes 1.33 and
// later, which takes longer per Service the more Services exist.
func FastAPIServer() []string {
	return []string{"--emulated-version=1.33", "--feature-gates=MultiCIDRServiceAllocator=false"}
}

// Install creates a namespace and installs the controller's prerequisites. It returns a client without rate limit.
func (c *Cluster) Install(ctx context.Context, namespace string) (kubernetes.Interface, error) {
	config := c.Plane.RESTConfig()
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"create", "namespace", "ovn-kubernetes"},
		{"create", "namespace", namespace},
		{"apply", "-k", filepath.Join(manifests, "crds")},
		{"wait", "--for=condition=Established", "crd", "--all"},
		{"apply", "-k", filepath.Join(manifests, "rbac")},
	} {
		if _, err := c.Plane.Kubectl(ctx, args...); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// Serve serves an empty OVN database, "nb" or "sb", and returns its address.
func Serve(ctx context.Context, dir, name string) (address string, err error) {
	file, socket := filepath.Join(dir, name+".db"), filepath.Join(dir, name+".sock")
	schema := ovnprefix.Schema("ovn/ovn-" + name + ".ovsschema")
	if out, err := exec.CommandContext(ctx, "ovsdb-tool", "create", file, schema).CombinedOutput(); err != nil {
		return "", fmt.Errorf("create a database (package ovn-central has the program): %w: %s", err, out)
	}
	_, err = proc.Start(ctx, proc.Spec{Name: name, Dir: dir,
		Args: []string{"ovsdb-server", file, "--remote=punix:" + socket, "--unixctl=" + socket + ".ctl", "-vsyslog:off"},
		Ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})
	return "unix:" + socket, err
}

// Fill runs ovn-nbctl.
func Fill(ctx context.Context, nb string, args ...string) error {
	args = append([]string{"--db=" + nb, "--timeout=60"}, args...)
	if out, err := exec.CommandContext(ctx, "ovn-nbctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("fill the northbound database: %w: %s", err, out)
	}
	return nil
}
