// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/poll"
)

// This file runs OVN-Kubernetes itself, without containers. In central mode, one ovnkube runs as master in the
// namespace "cen" and one as node on each node. In interconnect mode, one ovnkube runs as cluster manager in the
// namespace "cen", and one as controller and node on each node, next to that node's databases.

const (
	ovnkubeName = "ovnkube"
	// noToken is a placeholder that ovnkube requires for the configuration of its CNI plugin, which does not run here.
	noToken = "none"
	// ovnkubeMetrics is where ovnkube serves its metrics, inside its namespace.
	ovnkubeMetrics = "127.0.0.1:9410"
	// ovnkubeStart bounds the time until br-ex of a node has the flows of OVN-Kubernetes.
	ovnkubeStart = 3 * time.Minute
	// gatewayCookie marks the flows of OVN-Kubernetes on br-ex.
	gatewayCookie = "cookie=0xdeff105"
	// gatewayFlows is the minimum number of these flows when the gateway works.
	gatewayFlows = 6
	// crashLoop is how often ovnkube ends before the lab gives up. The kubelet would restart it, too, if it ended once
	// because something that it needs came up later.
	crashLoop = 3
	// interconnectFlag selects interconnect. OVN-Kubernetes has no other mode, and neither this flag nor --zone, since
	// August 2026.
	interconnectFlag = "--enable-interconnect"
)

// bootIDName is the file in the directory of a node with the ID of its boot, if the node was rebooted. All nodes of the
// lab have the same kernel.
const bootIDName = "boot_id"

// containedScript runs a command in the environment of a container of OVN-Kubernetes' pods: with a private /run, in
// which ovn and openvswitch are the directory $1, and with the node's boot ID. $2, the directory of labs, remains
// visible.
const containedScript = `set -e
dir=$1 labs=$2 run=$1/run
shift 2
mount --make-rprivate /
mkdir -p "$run"
mount -t tmpfs run "$run"
mkdir -p "$run/ovn" "$run/openvswitch" "$run/ovn-kubernetes" "$run/netns" "$run/mount"
mount --bind "$dir" "$run/ovn"
mount --bind "$dir" "$run/openvswitch"
case $labs in /run/*)
	mkdir -p "$run/${labs#/run/}"
	mount --bind "$labs" "$run/${labs#/run/}"
esac
if [ -e "$dir/boot_id" ]; then
	mount --bind "$dir/boot_id" /proc/sys/kernel/random/boot_id
fi
mount --move "$run" /run
exec "$@"`

// restartScript restarts a command whenever it exits, as the kubelet does, and adds the exit status to the file $2. It
// removes the pid file $1, because ovnkube would otherwise mistake an unrelated process with the same pid for an
// earlier instance.
const restartScript = `pid=$1 ends=$2
shift 2
while :; do
	rm -f "$pid"
	"$@" && status=0 || status=$?
	echo "$status" >>"$ends"
	sleep 1
done`

// contained returns the command line that runs args by containedScript for a namespace.
func (l *Lab) contained(short string, args ...string) []string {
	return append([]string{"unshare", "-m", "sh", "-c", containedScript, "sh", l.path(short), filepath.Dir(l.Dir)},
		args...)
}

// startOVNKube installs OVN-Kubernetes in a cluster whose API server and Open vSwitch instances run. It returns when
// the gateways of all nodes work.
func (l *Lab) startOVNKube(ctx context.Context, p *progress) error {
	crds := l.state.Network.CRDs + string(filepath.Separator) // It may be a symbolic link.
	if _, err := l.Kubectl(ctx, "", "apply", "--server-side", "-f", crds); err != nil {
		return fmt.Errorf("CRDs of OVN-Kubernetes: %w", err)
	}
	for _, namespace := range []string{productNamespace, hostNetworkNamespace} {
		if err := l.namespace(ctx, namespace); err != nil {
			return err
		}
	}
	if err := l.startOVNKubes(ctx); err != nil {
		return err
	}
	p.logf("OVN-Kubernetes: the gateways of %d nodes work", len(l.Nodes))
	return l.loadAddresses(ctx)
}

// hostNetworkNamespace is the namespace by which network policies select traffic from hosts.
const hostNetworkNamespace = "ovn-host-network"

func (l *Lab) namespace(ctx context.Context, name string) error {
	_, err := l.Kubectl(ctx, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n", "apply", "-f", "-")
	return err
}

// centralFlags returns the flags of the ovnkube that serves the whole cluster.
func (l *Lab) centralFlags() []string {
	if l.state.Network.Zones() {
		return []string{"--init-cluster-manager=" + centralNetns}
	}
	return append([]string{"--init-master=" + centralNetns}, databaseFlags()...)
}

// databaseFlags returns the flags with the addresses of the cluster's databases.
func databaseFlags() []string {
	central := Management().Host(centralHost)[0].Addr()
	return []string{fmt.Sprintf("--nb-address=tcp:%s:%d", central, nbPort),
		fmt.Sprintf("--sb-address=tcp:%s:%d", central, sbPort)}
}

// startOVNKubes starts all instances of ovnkube and returns when the gateways of all nodes work.
func (l *Lab) startOVNKubes(ctx context.Context) error {
	if err := l.runOVNKube(ctx, centralNetns, l.centralFlags()...); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, n := range l.Nodes {
		g.Go(func() error { return l.startOVNKubeNode(gctx, n) })
	}
	return g.Wait()
}

// startOVNKubeNode starts ovnkube on a node and returns when its gateway works.
func (l *Lab) startOVNKubeNode(ctx context.Context, n Node) error {
	flags := []string{
		"--init-node=" + n.Name, "--nodeport", "--gateway-interface=br-ex", "--mtu=1400",
		"--encap-ip=" + Underlay().Host(n.Index)[0].Addr().String(), "--cni-conf-dir=" + l.path(n.Name, "cni"),
	}
	if l.state.Network.Zones() {
		flags = append(flags, "--init-ovnkube-controller="+n.Name)
	} else {
		flags = append(flags, databaseFlags()...)
	}
	if err := os.MkdirAll(l.path(n.Name, "cni"), 0o755); err != nil {
		return err
	}
	if err := l.runOVNKube(ctx, n.Name, flags...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ovnkubeStart)
	defer cancel()
	var ended error // Waiting for the gateway is pointless then.
	err := poll.Until(ctx, func(context.Context) error {
		if ended = errors.Join(l.ovnkubeEnds(centralNetns), l.ovnkubeEnds(n.Name)); ended != nil {
			return nil
		}
		return l.gatewayWorks(ctx, n)
	})
	if err != nil {
		return fmt.Errorf("ovnkube of node %s: %w\n%s", n.Name, err, l.logTail(n.Name, ovnkubeName))
	}
	return ended
}

// endsName is the file of a namespace that restartScript extends.
const endsName = "ovnkube.ends"

// ovnkubeEnds returns an error with the last line of ovnkube in a namespace if it ends again and again.
func (l *Lab) ovnkubeEnds(short string) error {
	text, err := os.ReadFile(l.path(short, endsName))
	if errors.Is(err, os.ErrNotExist) { // It is about to be started.
		return nil
	}
	if err != nil {
		return err
	}
	statuses := strings.Fields(string(text))
	if len(statuses) < crashLoop {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(l.logTail(short, ovnkubeName))), "\n")
	return fmt.Errorf("ovnkube of %s ended %d times, last with exit status %s: %s", short, len(statuses),
		statuses[len(statuses)-1], lines[len(lines)-1])
}

// checkProgram returns an error if the program does not know the mode.
func (n Network) checkProgram(ctx context.Context) error {
	if !n.Real() || n.Zones() {
		return nil
	}
	chooses, err := n.choosesMode(ctx)
	if err == nil && !chooses {
		err = fmt.Errorf("network %s: %s=%s has interconnect only: it has no flag %s", n, OVNKubeVariable, n.Program,
			interconnectFlag)
	}
	return err
}

// choosesMode reports whether the program has flags for the mode.
func (n Network) choosesMode(ctx context.Context) (bool, error) {
	help, err := run(ctx, n.Program, "--help")
	if err != nil {
		return false, fmt.Errorf("%s=%s: %w", OVNKubeVariable, n.Program, err)
	}
	return strings.Contains(help, interconnectFlag), nil
}

// WithoutEgressServices returns why OVN-Kubernetes runs without EgressServices here, and "" if it runs with them. The
// nft(8) of Debian 12 does not take the rules that it has for them, and ovnkube then ends at once.
func (Network) WithoutEgressServices(ctx context.Context) string {
	const rules = "table inet t { map m { type ipv4_addr : ipv4_addr; }\n" +
		"chain c { type nat hook postrouting priority 100; snat to ip saddr map @m; }\n}\n"
	if _, err := feed(ctx, rules, "nft", "--check", "-f", "-"); err != nil {
		return err.Error()
	}
	return ""
}

// KillOVNKube kills all instances of ovnkube at once by SIGKILL. It does nothing if they are dead.
func (l *Lab) KillOVNKube() error {
	for _, short := range l.ovnkubeNamespaces() {
		p, err := proc.Find(l.path(short), ovnkubeName)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			return fmt.Errorf("kill ovnkube of %s: %w", short, err)
		}
	}
	return nil
}

// RestartOVNKube kills all instances of ovnkube at once by SIGKILL and starts them again. It returns when all of them
// are ready.
func (l *Lab) RestartOVNKube(ctx context.Context) error {
	if err := l.KillOVNKube(); err != nil {
		return err
	}
	if err := l.startOVNKubes(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ovnkubeStart)
	defer cancel()
	for _, short := range l.ovnkubeNamespaces() {
		if err := poll.Until(ctx, func(context.Context) error { return l.ovnkubeReady(ctx, short) }); err != nil {
			return fmt.Errorf("ovnkube of %s: %w\n%s", short, err, l.logTail(short, ovnkubeName))
		}
	}
	return nil
}

// ovnkubeNamespaces returns the namespaces in which ovnkube runs.
func (l *Lab) ovnkubeNamespaces() []string {
	shorts := []string{centralNetns}
	for _, n := range l.Nodes {
		shorts = append(shorts, n.Name)
	}
	return shorts
}

// readyMetric is the time that a component of ovnkube took to start, 0 until it is ready.
var readyMetric = regexp.MustCompile(`(?m)^ovnkube_\w+_ready_duration_seconds(?:\{.*\})? (\S+)$`)

// ovnkubeReady returns nil if all components of the ovnkube in a namespace are ready.
func (l *Lab) ovnkubeReady(ctx context.Context, short string) error {
	metrics, err := l.Exec(ctx, short, "curl", "-sS", "--max-time", "5", "http://"+ovnkubeMetrics+"/metrics")
	if err != nil {
		return err
	}
	components := readyMetric.FindAllStringSubmatch(metrics, -1)
	for _, c := range components {
		if c[1] == "0" {
			return errors.New("not ready: " + c[0])
		}
	}
	if len(components) == 0 {
		return errors.New("no component reports that it is ready")
	}
	return nil
}

// runOVNKube starts ovnkube in a namespace.
func (l *Lab) runOVNKube(ctx context.Context, short string, flags ...string) error {
	cp, err := l.ControlPlane()
	if err != nil {
		return err
	}
	network := l.state.Network
	args := []string{
		"sh", "-c", restartScript, "sh", l.path(short, "ovnkube.pid"), l.path(short, endsName), network.Program,
		"--k8s-kubeconfig=" + cp.AdminKubeconfig(), "--k8s-token=" + noToken, "--cluster-subnets=" + podNetworks(),
		"--k8s-service-cidrs=" + strings.Join(texts(serviceSubnets()), ","),
		"--gateway-mode=" + network.Gateway, "--loglevel=4", "--ovn-config-namespace=" + productNamespace,
		"--host-network-namespace=" + hostNetworkNamespace,
		"--metrics-bind-address=" + ovnkubeMetrics, "--ovn-metrics-bind-address=127.0.0.1:9476",
		"--pidfile=" + l.path(short, "ovnkube.pid"),
	}
	if network.Zones() {
		chooses, err := network.choosesMode(ctx)
		if err != nil {
			return err
		}
		if chooses {
			args = append(args, interconnectFlag)
		}
		if chooses && short != centralNetns {
			args = append(args, "--zone="+short)
		}
	}
	if network.WithoutEgressServices(ctx) == "" {
		args = append(args, "--enable-egress-service")
	}
	if err := os.Remove(l.path(short, endsName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err = proc.Start(ctx, proc.Spec{
		Name: ovnkubeName, Dir: l.path(short), Netns: l.Netns(short), Env: ovsEnv(l.path(short)), Nice: proc.Machine,
		Args: l.contained(short, slices.Concat(args, flags)...),
	})
	return err
}

// podNetworks returns the cluster's subnets, each with the prefix length of a node's subnet, in the format of ovnkube.
func podNetworks() string {
	subnets := clusterSubnets()
	return fmt.Sprintf("%s/24,%s/64", subnets[0], subnets[1])
}

// gatewayWorks returns nil if OVN-Kubernetes has installed its flows on br-ex of the node.
func (l *Lab) gatewayWorks(ctx context.Context, n Node) error {
	flows, err := run(ctx, "ovs-ofctl", "-O", "OpenFlow13", "--no-stats", "dump-flows",
		"unix:"+l.path(n.Name, "br-ex.mgmt"))
	if err != nil {
		return err
	}
	if got := strings.Count(flows, gatewayCookie); got < gatewayFlows {
		return fmt.Errorf("br-ex has %d flows of OVN-Kubernetes, want %d at least", got, gatewayFlows)
	}
	return nil
}

// idAnnotation has the ID of a Node. OVN-Kubernetes derives its addresses on the join and the transit switch from it.
const idAnnotation = "k8s.ovn.org/node-id"

// loadAddresses reads the addresses that OVN-Kubernetes assigned from the Node objects.
func (l *Lab) loadAddresses(ctx context.Context) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	l.state.Given = map[string]given{}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		object, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		const subnetsAnnotation = "k8s.ovn.org/node-subnets"
		var subnets struct {
			Default []netip.Prefix `json:"default"`
		}
		text := object.Annotations[subnetsAnnotation]
		if err := json.Unmarshal([]byte(text), &subnets); err != nil || len(subnets.Default) != len(clusterSubnets()) {
			return errors.Join(fmt.Errorf("node %s: annotation %s: %q: want a subnet a family", n.Name, subnetsAnnotation, text),
				err)
		}
		id, err := strconv.Atoi(object.Annotations[idAnnotation])
		if err != nil {
			return fmt.Errorf("node %s: annotation %s: %w", n.Name, idAnnotation, err)
		}
		l.state.Given[n.Name] = given{PodSubnets: subnets.Default, ID: id}
		n.take(l.state.Given[n.Name])
	}
	return l.saveState()
}
