// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Endpoint is where an OVN database is served.
type Endpoint struct {
	// Address is a comma-separated list of unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT
	// (ovsdb(7), Connection Methods).
	Address string
	// PrivateKey, Certificate and CACert are files in PEM form, for ssl.
	PrivateKey, Certificate, CACert string
}

// Options is what a Controller works with.
type Options struct {
	// Kube reads Services, EndpointSlices and Nodes, and writes statuses and Events. Sixteen
	// status writes are under way at a time: a client-side rate limit makes them wait.
	Kube kubernetes.Interface
	// Config is how the API server is reached for the kinds of group slb.k8s.ovn.org.
	Config *rest.Config
	// NetworkType is what carries the cluster's network. With OpenShiftSDN there is no OVN: NB and SB
	// are not looked at, and the agents of nodes (`ovnkube-slb node --enable-sdn`) hold the addresses.
	NetworkType NetworkType
	// NB and SB are OVN's databases. Without NB addresses are given and announced
	// by BGP alone; without SB the active gateway is not known.
	NB, SB Endpoint
	// ClusterSubnets are the pods' networks, ServiceSubnets those of cluster IPs. Addresses in them are never given.
	ClusterSubnets, ServiceSubnets []netip.Prefix
	// RequireClass leaves Services without spec.loadBalancerClass to others.
	RequireClass bool
	// IgnoreMetalLBAnnotations reads only our own spellings of the annotations on Services.
	IgnoreMetalLBAnnotations bool
	// DrainTaints are keys of taints that announce a node's planned outage, so that it hands
	// over what it carries; see DefaultDrainTaints. Labels, annotations and deletions that
	// announce one are always heeded, cordon alone never.
	DrainTaints []string
	// MaxServiceBackends bounds what OVN is given of one Service: its addresses x ports x endpoints, each port
	// counting at least once. A Service beyond it keeps its addresses and is not announced by OVN at all. 0 stands for
	// DefaultMaxServiceBackends.
	MaxServiceBackends int
	// Disabled switches service load balancers off: nothing is given, and nothing announced. On
	// OpenShift the annotation of its network operator's Network counts, if it is there.
	Disabled bool
	// Fence, if set, is asked right before each transaction that would be sent to the northbound database, and must
	// not block; with an error it is not sent. For who elects a leader: Kube and Config have to ask it as well, before
	// each request that writes. It is asked by many goroutines at a time.
	Fence func() error
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// DefaultMaxServiceBackends is several times what is in use (a thousand ports of media servers in a hundred pods), and
// what a decision and OVN take in without holding up others for long.
const DefaultMaxServiceBackends = 100_000

// DefaultDrainTaints are the keys of taints with which others announce a node's outage:
// Kubernetes' out-of-service, medik8s' node maintenance and the cluster autoscaler's.
func DefaultDrainTaints() []string { return convert.DefaultDrainTaints() }

// convert says how Kubernetes' objects are read.
func (o *Options) convert() convert.Options {
	return convert.Options{
		DefaultClass: !o.RequireClass, MetalLBAnnotations: !o.IgnoreMetalLBAnnotations, DrainTaints: o.DrainTaints,
		Mode: world.DefaultMode(!o.Disabled), OpenShiftSDN: o.NetworkType == OpenShiftSDN,
	}
}

func (o *Options) validate() error {
	var errs []error
	if o.Kube == nil {
		errs = append(errs, errors.New("no client of the API server (Kube)"))
	}
	if o.Config == nil {
		errs = append(errs, errors.New("no configuration of the API server (Config)"))
	}
	if err := o.NetworkType.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("NetworkType: %w", err))
	}
	if o.MaxServiceBackends < 0 {
		errs = append(errs, fmt.Errorf("MaxServiceBackends: %d is negative", o.MaxServiceBackends))
	}
	subnets := map[string][]netip.Prefix{"ClusterSubnets": o.ClusterSubnets, "ServiceSubnets": o.ServiceSubnets}
	for name, nets := range subnets {
		for _, p := range nets {
			if !p.IsValid() || p != p.Masked() {
				errs = append(errs, fmt.Errorf("%s: %s is no network", name, p))
			}
		}
	}
	return errors.Join(errs...)
}
