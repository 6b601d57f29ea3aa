// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

// Names of flags that messages refer to.
const (
	flagConfigFile           = "config-file"
	flagEnable               = "enable-service-load-balancers"
	flagClasses              = "load-balancer-class"
	flagKubeconfig           = "k8s-kubeconfig"
	flagAPIServer            = "k8s-apiserver"
	flagToken                = "k8s-token"
	flagTokenFile            = "k8s-token-file"
	flagCACert               = "k8s-cacert"
	flagServiceCIDRs         = "k8s-service-cidrs"
	flagClusterSubnets       = "cluster-subnets"
	flagDrainTaints          = "drain-taints"
	flagMetrics              = "metrics-bind-address"
	flagMaxBackends          = "max-service-backends"
	flagMaxNamespaceBackends = "max-namespace-backends"
	flagMaxTotalBackends     = "max-backends"
	flagMetricsCert          = "metrics-cert-file"
	flagMetricsKey           = "metrics-key-file"
	flagPprof                = "metrics-enable-pprof"
	flagHealth               = "healthz-bind-address"
	flagLogLevel             = "loglevel"
	flagLeaderElect          = "leader-elect"
	flagLeaseNamespace       = "leader-elect-lease-namespace"
	flagLeaseName            = "leader-elect-lease-name"
	flagLeaseDuration        = "leader-elect-lease-duration"
	flagRenewDeadline        = "leader-elect-renew-deadline"
	flagRetryPeriod          = "leader-elect-retry-period"

	flagFRRNamespace = "frr-k8s-namespace"

	flagDatabaseTimeout = "leader-elect-database-timeout"
	flagStall           = "healthz-stall-timeout"

	flagNodeName    = "node-name"
	flagOVSAddress  = "ovs-address"
	flagOVNRunDir   = "ovn-run-dir"
	flagEnableGuard = "enable-l2-guard"
	flagEnableL2    = "enable-l2"
	flagEnableBGP   = "enable-bgp"
	flagEnableSDN   = "enable-sdn"
	flagSDNHealth   = "sdn-health-bind-address"
	flagNetworkType = "network-type"
)

// Categories of flags in --help.
const (
	categoryAPIServer = "API server"
	categoryServices  = "Services"
	categoryMetrics   = "Metrics, health and logs"
	categoryOVN       = "Databases of OVN"
	categoryNetworks  = "Networks of the cluster"
	categoryLease     = "Leader election"
	categoryModules   = "What the node does"
)

// setting is a flag and the key of the configuration file that sets its default.
type setting struct {
	flag         cli.Flag
	section, key string // of the file; empty for flags only
}

// grouped assigns flags to a category of --help.
func grouped(category string, all ...setting) []setting {
	for _, s := range all {
		switch f := s.flag.(type) {
		case *cli.StringFlag:
			f.Category = category
		case *cli.StringSliceFlag:
			f.Category = category
		case *cli.BoolFlag:
			f.Category = category
		case *cli.IntFlag:
			f.Category = category
		case *cli.Float64Flag:
			f.Category = category
		case *cli.DurationFlag:
			f.Category = category
		}
	}
	return all
}

func text(into *string, name, env, value, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, EnvVars: environment(env), Value: value, Usage: usage, Destination: into}
}

func environment(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func toggle(into *bool, name string, value bool, usage string) cli.Flag {
	return &cli.BoolFlag{Name: name, Value: value, Usage: usage, Destination: into}
}

func span(into *time.Duration, name string, value time.Duration, usage string) cli.Flag {
	return &cli.DurationFlag{Name: name, Value: value, Usage: usage, Destination: into}
}

// commonSettings binds the flags of all subcommands to o. Names and sections are those of OVN-Kubernetes where it has
// them. The keys of listen addresses start with prefix, because processes on one host may read the same file.
func commonSettings(o *common, prefix string) []setting {
	return slices.Concat(grouped(categoryAPIServer, []setting{
		{text(&o.kubeconfig, flagKubeconfig, "KUBECONFIG", "",
			"kubeconfig `FILE`; without it and --k8s-apiserver, the service account of the Pod"),
			"kubernetes", "kubeconfig"},
		{text(&o.apiServer, flagAPIServer, "K8S_APISERVER", "", "`URL` of the API server"), "kubernetes", "apiserver"},
		{text(&o.token, flagToken, "K8S_TOKEN", "", "bearer `TOKEN` for the API server"), "kubernetes", "token"},
		{text(&o.tokenFile, flagTokenFile, "K8S_TOKEN_FILE", "", "`FILE` with the bearer token, read again as it changes"),
			"kubernetes", "tokenFile"},
		{text(&o.caCert, flagCACert, "K8S_CACERT", "", "`FILE` with the API server's CA certificate"), "kubernetes",
			"cacert"},
		{flag: &cli.Float64Flag{Name: "k8s-qps", Destination: &o.qps,
			Usage: "maximum `NUMBER` of requests per second to the API server; 0 disables the client-side limit"}},
		{flag: &cli.IntFlag{Name: "k8s-burst", Destination: &o.burst,
			Usage: "maximum `NUMBER` of requests in a burst beyond --k8s-qps"}},
	}...), grouped(categoryServices, []setting{
		{toggle(&o.enabled, flagEnable, true,
			"serve Services of type LoadBalancer; if false, no address is allocated or announced"),
			ownSection, "enabled"},
		{toggle(&o.requireClass, "require-load-balancer-class", false,
			"ignore Services without spec.loadBalancerClass"),
			ownSection, "require-load-balancer-class"},
		{&cli.StringSliceFlag{Name: flagClasses, Destination: &o.classes,
			Usage: "also serve Services with these `CLASSES` (spec.loadBalancerClass), separated by commas; " +
				v1alpha1.LoadBalancerClass + " is always served"}, ownSection, flagClasses},
		{text(&o.drainTaints, flagDrainTaints, "", strings.Join(slb.DefaultDrainTaints(), ","),
			"comma-separated `KEYS` of taints that announce a planned outage of a node"), ownSection, flagDrainTaints},
	}...), grouped(categoryMetrics, []setting{
		{text(&o.metricsAddress, flagMetrics, "", "",
			"`HOST:PORT` to serve /metrics at, over TLS and to authorized clients; empty to disable"), ownSection,
			prefix + flagMetrics},
		{text(&o.metricsCert, flagMetricsCert, "", "",
			"certificate `FILE` for /metrics, read again as it changes; empty for a self-signed one"),
			ownSection, prefix + flagMetricsCert},
		{text(&o.metricsKey, flagMetricsKey, "", "", "private key `FILE` for --metrics-cert-file"), ownSection,
			prefix + flagMetricsKey},
		{toggle(&o.pprof, flagPprof, false, "serve profiles of this process at --metrics-bind-address, too, to clients "+
			"that are authorized for /debug/pprof/"),
			"metrics", "enable-pprof"},
		{text(&o.healthAddress, flagHealth, "", "",
			"`HOST:PORT` to serve /healthz and /readyz at, over plain HTTP; empty to disable"), ownSection, prefix + flagHealth},
		{&cli.IntFlag{Name: flagLogLevel, Value: 2, Destination: &o.logLevel, Usage: "verbosity of the log, a `NUMBER` from 0 to 10"},
			"logging", "loglevel"},
	}...))
}

// settings binds the flags of subcommand controller to o.
func settings(o *options) []setting {
	return slices.Concat(commonSettings(&o.common, ""), certificateSettings("nb", &o.nb), certificateSettings("sb", &o.sb),
		grouped(categoryNetworks, []setting{
			{text(&o.clusterSubnets, flagClusterSubnets, "", "", "comma-separated `SUBNETS` of pods: CIDR or CIDR/HOSTPREFIX"),
				"default", "cluster-subnets"},
			{text(&o.serviceSubnets, flagServiceCIDRs, "", "", "comma-separated `CIDRS` of cluster IPs"), "kubernetes",
				"service-cidrs"},
			{text(&o.networkType, flagNetworkType, "", "",
				"`TYPE` of the cluster network: OVNKubernetes or OpenShiftSDN; if empty, the one that OpenShift reports, "+
					"otherwise OVNKubernetes"),
				ownSection, flagNetworkType},
		}...), grouped(categoryOVN, []setting{
			{text(&o.nb.Address, "nb-address", "", "unix:/var/run/ovn/ovnnb_db.sock",
				"`ADDRESSES` of the northbound database; empty with interconnect, where agents on the nodes program the databases "+
					"(node --enable-l2), and if addresses are advertised by BGP only"), "ovnnorth",
				"address"},
			{text(&o.sb.Address, "sb-address", "", "unix:/var/run/ovn/ovnsb_db.sock", "`ADDRESSES` of the southbound database"),
				"ovnsouth", "address"},
		}...), grouped(categoryServices, []setting{
			{toggle(&o.metalLBAnnotations, "metallb-annotations", true,
				"also read annotations of MetalLB (metallb.io and metallb.universe.tf)"),
				ownSection, "metallb-annotations"},
			{text(&o.frrNamespace, flagFRRNamespace, "FRR_K8S_NAMESPACE", "",
				"`NAMESPACE` of frr-k8s, in which FRRConfigurations are written for BGPPeers with backend FRRK8s; empty to use none"),
				ownSection, flagFRRNamespace},
			{&cli.IntFlag{Name: flagMaxBackends, Value: slb.DefaultMaxServiceBackends, Destination: &o.maxBackends,
				Usage: "maximum `NUMBER` of backends of a Service (addresses x ports x endpoints), with interconnect at most 8000; OVN does " +
					"not announce a Service that exceeds it"}, ownSection,
				flagMaxBackends},
			{&cli.IntFlag{Name: flagMaxNamespaceBackends, Value: slb.DefaultMaxNamespaceBackends,
				Destination: &o.maxNamespaceBackends,
				Usage: "maximum `NUMBER` of backends of all Services of a namespace; a source range counts as 20 for each address " +
					"and protocol; OVN does not announce the newer Services that do not fit"}, ownSection,
				flagMaxNamespaceBackends},
			{&cli.IntFlag{Name: flagMaxTotalBackends, Value: slb.DefaultMaxBackends, Destination: &o.maxTotalBackends,
				Usage: "maximum `NUMBER` of backends of all Services; if they need more, the namespaces that need most are reduced to " +
					"an equal share and what others leave"}, ownSection,
				flagMaxTotalBackends},
		}...), grouped(categoryLease, []setting{
			{toggle(&o.leaderElect, flagLeaderElect, false, "run only while holding the lease"), ownSection, flagLeaderElect},
			{flag: text(&o.leaseNamespace, flagLeaseNamespace, "POD_NAMESPACE", "ovn-kubernetes",
				"`NAMESPACE` of the lease, and of the IPAddressClaims for pools with externalPool")},
			{flag: text(&o.leaseName, flagLeaseName, "", "ovnkube-slb", "`NAME` of the lease")},
			{flag: text(&o.leaseIdentity, "leader-elect-identity", "POD_NAME", "",
				"`NAME` of this candidate; if empty, host name and process ID")},
			{flag: span(&o.leaseDuration, flagLeaseDuration, 15*time.Second,
				"`DURATION` that other candidates wait before they acquire a lease that is not renewed")},
			{flag: span(&o.renewDeadline, flagRenewDeadline, 10*time.Second,
				"`DURATION` for which the leader tries to renew the lease before it gives up")},
			{flag: span(&o.retryPeriod, flagRetryPeriod, 2*time.Second, "`DURATION` between attempts to acquire or renew the lease")},
			{flag: span(&o.databaseTimeout, flagDatabaseTimeout, 15*time.Second,
				"`DURATION` for which the leader may be disconnected from a required database before it releases the lease; a disconnected "+
					"candidate does not compete")},
		}...), grouped(categoryMetrics, setting{flag: span(&o.stallTimeout, flagStall, time.Minute,
			"`DURATION` for which a loop may be stuck before /healthz fails")}))
}

// certificateSettings binds the ssl flags of a database to e. db is nb or sb.
func certificateSettings(db string, e *slb.Endpoint) []setting {
	section := map[string]string{"nb": "ovnnorth", "sb": "ovnsouth"}[db]
	return grouped(categoryOVN, []setting{
		{text(&e.PrivateKey, db+"-client-privkey", "", "", "private key `FILE` for ssl"), section, "client-privkey"},
		{text(&e.Certificate, db+"-client-cert", "", "", "certificate `FILE` for ssl"), section, "client-cert"},
		{text(&e.CACert, db+"-client-cacert", "", "", "CA certificate `FILE` for ssl"), section, "client-cacert"},
	}...)
}
