// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Endpoint describes how to connect to an OVN database.
type Endpoint struct {
	// Address is a comma-separated list of unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT
	// (ovsdb(7), Connection Methods).
	Address string
	// PrivateKey, Certificate and CACert are paths of PEM files, used for ssl.
	PrivateKey, Certificate, CACert string
}

// Options configures a Controller.
type Options struct {
	// Kube reads Services, EndpointSlices and Nodes, and writes statuses and Events. Sixteen status writes are in flight
	// at a time; a client-side rate limit delays them.
	Kube kubernetes.Interface
	// Config is the client configuration for the kinds of the API group slb.k8s.ovn.org.
	Config *rest.Config
	// NetworkType is the type of the cluster network. With OpenShiftSDN there is no OVN: NB and SB are ignored, and the
	// node agents (`ovnkube-slb node --enable-sdn`) hold the addresses.
	NetworkType NetworkType
	// NB and SB are OVN's databases. Without NB, addresses are still allocated, but announced only by BGP. Without SB, the
	// active gateway is not known.
	NB, SB Endpoint
	// ClusterSubnets are the networks of pods, ServiceSubnets those of cluster IPs. Addresses in them are never allocated.
	ClusterSubnets, ServiceSubnets []netip.Prefix
	// RequireClass makes the controller ignore Services without spec.loadBalancerClass.
	RequireClass bool
	// LoadBalancerClasses are values of spec.loadBalancerClass that are served besides v1alpha1.LoadBalancerClass, as
	// implementations of Gateway API set on their Services. No other controller must serve them. See ValidateClass.
	LoadBalancerClasses []string
	// IgnoreMetalLBAnnotations makes the controller read only its own names of the annotations on Services.
	IgnoreMetalLBAnnotations bool
	// DrainTaints are the keys of taints that announce a planned outage of a node. The node then hands over its
	// shards. See DefaultDrainTaints. Labels, annotations and deletions that announce an outage always count; a cordon
	// alone never does.
	DrainTaints []string
	// MaxServiceBackends limits the backends of one Service in OVN: addresses x ports x endpoints, where each port counts
	// at least once. A Service above the limit keeps its addresses, but OVN does not announce it at all. 0 means
	// DefaultMaxServiceBackends.
	MaxServiceBackends int
	// MaxNamespaceBackends and MaxBackends limit the backends of the Services of one namespace and of all Services,
	// where a source range counts as 20 backends for each address and protocol. Within a namespace, older Services come
	// first. If all together need more than MaxBackends, the namespaces that need most are reduced to an equal share
	// and what others leave. A Service that does not fit is treated like one above MaxServiceBackends. 0 means
	// DefaultMaxNamespaceBackends and DefaultMaxBackends.
	MaxNamespaceBackends, MaxBackends int
	// FRRK8sNamespace is the namespace of frr-k8s, for BGPPeers with backend FRRK8s. Empty means that frr-k8s is not used.
	FRRK8sNamespace string
	// Namespace is that of the controller, in which it creates IPAddressClaims for IPAddressPools with externalPool. Empty
	// means that such pools get no addresses.
	Namespace string
	// Disabled switches service load balancers off: no address is allocated or announced. On OpenShift, the annotation on
	// the network operator's Network takes precedence if it is present.
	Disabled bool
	// Fence, if set, is called right before each transaction is sent to the northbound database. If it returns an error,
	// the transaction is not sent. Fence must not block, and many goroutines call it concurrently. It is meant for leader
	// election: the clients of Kube and Config must call it as well, before each write request.
	Fence func() error
	// Registerer registers the metrics; nil disables them.
	Registerer prometheus.Registerer
}

// DefaultMaxServiceBackends is several times what is in use (a thousand ports of media servers in a hundred pods).
// Neither a decision nor OVN delays other Services for long at this size.
const DefaultMaxServiceBackends = 100_000

// DefaultMaxBackends is what the memory limit in dist/manifests suffices for: three times 10,000 Services with 20
// backends each. A namespace may have half of it.
const (
	DefaultMaxBackends          = 600_000
	DefaultMaxNamespaceBackends = DefaultMaxBackends / 2
)

// DefaultDrainTaints returns the keys of taints with which other components announce the outage of a node: Kubernetes'
// out-of-service taint, medik8s' node maintenance taint and the cluster autoscaler's taint.
func DefaultDrainTaints() []string { return convert.DefaultDrainTaints() }

// convert returns the options for converting Kubernetes objects.
func (o *Options) convert() convert.Options {
	return convert.Options{
		DefaultClass: !o.RequireClass, Classes: o.LoadBalancerClasses,
		MetalLBAnnotations: !o.IgnoreMetalLBAnnotations, DrainTaints: o.DrainTaints,
		Mode: world.DefaultMode(!o.Disabled), OpenShiftSDN: o.NetworkType == OpenShiftSDN,
	}
}

// ValidateClass returns an error unless a class is one that the API server accepts in spec.loadBalancerClass: a name of
// up to 63 characters, with a DNS subdomain and a slash before it or without.
func ValidateClass(class string) error {
	if wrongs := validation.IsQualifiedName(class); len(wrongs) > 0 {
		return fmt.Errorf("is no load balancer class: %s", strings.Join(wrongs, "; "))
	}
	return nil
}

func (o *Options) validate() error {
	var errs []error
	if o.Kube == nil {
		errs = append(errs, errors.New("no client of the API server (Kube)"))
	}
	if o.Config == nil {
		errs = append(errs, errors.New("no configuration of the API server (Config)"))
	}
	for _, class := range o.LoadBalancerClasses {
		if err := ValidateClass(class); err != nil {
			errs = append(errs, fmt.Errorf("LoadBalancerClasses: %q: %w", class, err))
		}
	}
	if err := o.NetworkType.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("NetworkType: %w", err))
	}
	if o.MaxServiceBackends < 0 {
		errs = append(errs, fmt.Errorf("MaxServiceBackends: %d is negative", o.MaxServiceBackends))
	}
	if o.MaxNamespaceBackends < 0 {
		errs = append(errs, fmt.Errorf("MaxNamespaceBackends: %d is negative", o.MaxNamespaceBackends))
	}
	if o.MaxBackends < 0 {
		errs = append(errs, fmt.Errorf("MaxBackends: %d is negative", o.MaxBackends))
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
