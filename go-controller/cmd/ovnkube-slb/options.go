// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
)

// common are the options of all subcommands. Flags take precedence over the environment, and the environment over the
// configuration file.
type common struct {
	kubeconfig, apiServer, token, tokenFile, caCert string
	qps                                             float64
	burst                                           int

	enabled, requireClass bool
	classes               cli.StringSlice
	drainTaints           string

	metricsAddress, healthAddress string
	metricsCert, metricsKey       string
	pprof                         bool
	logLevel                      int
}

// minStall is twice the interval between heartbeats of an idle loop.
const minStall = 10 * time.Second

// options are the options of subcommand controller.
type options struct {
	common

	clusterSubnets, serviceSubnets string
	networkType                    string
	nb, sb                         slb.Endpoint

	metalLBAnnotations bool
	frrNamespace       string
	// The largest numbers of backends: of a Service, of a namespace, and of all.
	maxBackends, maxNamespaceBackends, maxTotalBackends int

	leaderElect                               bool
	leaseNamespace, leaseName, leaseIdentity  string
	leaseDuration, renewDeadline, retryPeriod time.Duration
	// databaseTimeout is how long a leader may be without a database. stallTimeout is how long a loop may have no
	// heartbeat.
	databaseTimeout, stallTimeout time.Duration
}

// Validate returns all problems with the options, each with its flag and value.
func (o *options) Validate() error {
	var errs []error
	wrong := noting(&errs)
	for flag, text := range map[string]string{flagClusterSubnets: o.clusterSubnets, flagServiceCIDRs: o.serviceSubnets} {
		if _, err := parseSubnets(text); err != nil {
			wrong(flag, text, err.Error())
		}
	}
	if err := slb.NetworkType(o.networkType).Validate(); err != nil {
		wrong(flagNetworkType, o.networkType, err.Error())
	}
	for flag, n := range map[string]int{flagMaxBackends: o.maxBackends, flagMaxNamespaceBackends: o.maxNamespaceBackends,
		flagMaxTotalBackends: o.maxTotalBackends} {
		if n < 1 {
			wrong(flag, n, "is not at least 1")
		}
	}
	for db, e := range map[string]slb.Endpoint{"nb": o.nb, "sb": o.sb} {
		if e.Address != "" {
			checkEndpoint(wrong, db, e)
		}
	}
	if o.frrNamespace != "" && len(validation.IsDNS1123Label(o.frrNamespace)) > 0 {
		wrong(flagFRRNamespace, o.frrNamespace, "is no name of a namespace")
	}
	o.check(wrong)
	if o.stallTimeout < minStall {
		wrong(flagStall, o.stallTimeout, fmt.Sprintf("is less than %s, which an idle loop may be silent for", minStall))
	}
	if o.leaderElect {
		o.checkLease(wrong)
	}
	return errors.Join(errs...)
}

// noting returns a function that appends a problem with a flag and its value to errs.
func noting(errs *[]error) func(flag string, value any, what string) {
	return func(flag string, value any, what string) {
		*errs = append(*errs, fmt.Errorf("--%s %q: %s", flag, fmt.Sprint(value), what))
	}
}

func (o *common) check(wrong func(flag string, value any, what string)) {
	if o.token != "" && o.tokenFile != "" {
		wrong(flagTokenFile, o.tokenFile, "excludes --"+flagToken)
	}
	if o.kubeconfig != "" && o.apiServer != "" {
		wrong(flagAPIServer, o.apiServer, "excludes --"+flagKubeconfig)
	}
	if (o.token != "" || o.tokenFile != "") && o.apiServer == "" {
		wrong(flagAPIServer, o.apiServer, "is needed with a token")
	}
	for _, key := range parseKeys(o.drainTaints) {
		if wrongs := validation.IsQualifiedName(key); len(wrongs) > 0 {
			wrong(flagDrainTaints, key, "is no key of a taint: "+strings.Join(wrongs, "; "))
		}
	}
	for _, class := range o.loadBalancerClasses() {
		if err := slb.ValidateClass(class); err != nil {
			wrong(flagClasses, class, err.Error())
		}
	}
	for flag, file := range map[string]string{flagKubeconfig: o.kubeconfig, flagTokenFile: o.tokenFile,
		flagCACert: o.caCert} {
		if _, err := os.Stat(file); file != "" && err != nil {
			wrong(flag, file, err.Error())
		}
	}
	for flag, address := range map[string]string{flagMetrics: o.metricsAddress, flagHealth: o.healthAddress} {
		if address == "" {
			continue
		}
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			wrong(flag, address, "want HOST:PORT")
		}
	}
	o.checkMetrics(wrong)
	if o.logLevel < 0 || o.logLevel > 10 {
		wrong(flagLogLevel, o.logLevel, "is not between 0 and 10")
	}
}

func (o *options) checkLease(wrong func(flag string, value any, what string)) {
	if o.leaseNamespace == "" {
		wrong(flagLeaseNamespace, o.leaseNamespace, "is needed with --"+flagLeaderElect)
	}
	if o.leaseName == "" {
		wrong(flagLeaseName, o.leaseName, "is needed with --"+flagLeaderElect)
	}
	// client-go's leader election requires this (its jitter factor is 1.2).
	if o.leaseDuration <= o.renewDeadline {
		wrong(flagLeaseDuration, o.leaseDuration, fmt.Sprintf("is not longer than --%s %s", flagRenewDeadline,
			o.renewDeadline))
	}
	if o.renewDeadline <= o.retryPeriod*6/5 {
		wrong(flagRenewDeadline, o.renewDeadline, fmt.Sprintf("is not longer than 1.2 x --%s %s", flagRetryPeriod,
			o.retryPeriod))
	}
	if o.databaseTimeout <= 0 {
		wrong(flagDatabaseTimeout, o.databaseTimeout, "is not positive")
	}
	if o.retryPeriod <= 0 {
		wrong(flagRetryPeriod, o.retryPeriod, "is not positive")
	}
}

func checkEndpoint(wrong func(flag string, value any, what string), db string, e slb.Endpoint) {
	for address := range strings.SplitSeq(e.Address, ",") {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(address), ":")
		if rest == "" || scheme != "unix" && scheme != "tcp" && scheme != "ssl" {
			wrong(db+"-address", e.Address, "want a comma-separated list of unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT")
			return
		}
	}
	if strings.Contains(e.Address, "ssl:") {
		checkCertificates(wrong, db, e, fmt.Sprintf("--%s-address %s", db, e.Address))
	}
}

// checkCertificates checks the files that an ssl connection needs. with names the option that requires them.
func checkCertificates(wrong func(flag string, value any, what string), db string, e slb.Endpoint, with string) {
	readable := true
	for flag, file := range map[string]string{
		db + "-client-privkey": e.PrivateKey, db + "-client-cert": e.Certificate, db + "-client-cacert": e.CACert,
	} {
		if file == "" {
			wrong(flag, file, "is needed with "+with)
			readable = false
		} else if _, err := os.ReadFile(file); err != nil {
			wrong(flag, file, err.Error())
			readable = false
		}
	}
	if !readable {
		return
	}
	if _, err := tls.LoadX509KeyPair(e.Certificate, e.PrivateKey); err != nil {
		wrong(db+"-client-cert", e.Certificate, fmt.Sprintf("with --%s-client-privkey %s: %v", db, e.PrivateKey, err))
	}
	if text, err := os.ReadFile(e.CACert); err != nil || !x509.NewCertPool().AppendCertsFromPEM(text) {
		wrong(db+"-client-cacert", e.CACert, "contains no certificate")
	}
}

// loadBalancerClasses returns the classes that are served besides our own.
func (o *common) loadBalancerClasses() []string {
	return parseKeys(strings.Join(o.classes.Value(), ","))
}

// parseKeys parses a comma-separated list.
func parseKeys(text string) []string {
	var keys []string
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// parseSubnets parses OVN-Kubernetes' list of CIDR or CIDR/HOSTPREFIX. The host prefix is the prefix length of each
// node's subnet.
func parseSubnets(text string) ([]netip.Prefix, error) {
	var nets []netip.Prefix
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		cidr := entry
		host := ""
		if parts := strings.Split(entry, "/"); len(parts) == 3 {
			cidr, host = parts[0]+"/"+parts[1], parts[2]
		}
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("%q is neither CIDR nor CIDR/HOSTPREFIX", entry)
		}
		if n, err := strconv.Atoi(host); host != "" && (err != nil || n <= p.Bits() || n > p.Addr().BitLen()) {
			return nil, fmt.Errorf("%q: host prefix %q is not between %d and %d", entry, host, p.Bits()+1, p.Addr().BitLen())
		}
		nets = append(nets, p.Masked())
	}
	return nets, nil
}
