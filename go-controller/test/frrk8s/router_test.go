// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

const manifests = "../../../dist/manifests"

// site is a node with FRR, which another FRRConfiguration has a session with a router for.
const site = `
{apiVersion: v1, kind: Namespace, metadata: {name: ` + namespace + `}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {kubernetes.io/hostname: n1}
  annotations: {k8s.ovn.org/l3-gateway-config: '{"default":{"mode":"local","ip-addresses":["10.77.0.2/24"]}}'}
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {namespace: ` + namespace + `, name: fabric}
spec: {bgp: {routers: [{asn: 64500, neighbors: [
  {address: 10.77.0.1, asn: 64512, holdTime: 9s, keepaliveTime: 3s, connectTime: 1s}]}]}}
`

// shop are a pool that FRR advertises, and a Service with an endpoint.
const shop = `
{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: IPAddressPool, metadata: {name: far},
  spec: {addresses: [203.0.113.1-203.0.113.9]}}
---
{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: BGPAdvertisement, metadata: {name: far},
  spec: {ipAddressPools: [far], communities: ["64500:7"]}}
---
{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: BGPPeer, metadata: {name: tor},
  spec: {backend: FRRK8s, myASN: 64500, peerASN: 64512, peerAddress: 10.77.0.1}}
`

func service(name string) string {
	return fmt.Sprintf(`
{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: %[1]s},
  spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: %[1]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: [10.244.1.10], nodeName: n1, conditions: {ready: true}}]
`, name)
}

// A Service is advertised to a router in the session that FRR has already. Objects are written as the API server stores
// them, so that another leader changes only what a second Service needs. Without the backend, they vanish.
func TestServiceReachesARouter(t *testing.T) {
	contract.TestAsRoot(t, append(frr.Programs(frr.Prefix()), "ip")...)
	dir, err := os.MkdirTemp("", "frrk8s") //nolint:usetesting // FRR does not run as root, and t.TempDir is below a closed directory
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // FRR does not run as root.
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	onNode, router := routers(t, dir)
	configure(t, router, "router bgp 64512", " bgp router-id 10.255.0.1", " no bgp ebgp-requires-policy",
		" neighbor 10.77.0.2 remote-as 64500")
	reloadBy(t, dir, onNode)
	n := start(t, dir, site)
	n.kubectl(t, "apply", "-k", filepath.Join(manifests, "crds"))
	n.kubectl(t, "wait", "--for=condition=Established", "--timeout=1m", "crd", "--all")
	if err := n.plane.Apply(t.Context(), shop+"---"+service("web")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			n.dump(t)
			for _, r := range []frr.Router{onNode, router} {
				out, err := r.Vtysh(context.WithoutCancel(t.Context()), "-c", "show bgp ipv4 unicast summary", "-c",
					"show bgp ipv4 unicast", "-c", "show running-config").CombinedOutput()
				t.Logf("%s (%v): %.3000s", r.Name, err, out)
			}
		}
	})
	stop := n.controller(t)
	await.True(t, "a route to the Service on the router", func() bool { return has(t, router, "203.0.113.1/32") })
	running := frrapi.ParseRunning(vtysh(t, onNode, "show running-config"))["10.77.0.1"]
	if want := []netip.Prefix{netip.MustParsePrefix("203.0.113.1/32")}; !slices.Equal(running, want) {
		t.Errorf("the node runs %v, want %v", running, want)
	}
	stop()
	stop = n.controller(t)
	if err := n.plane.Apply(t.Context(), service("db")); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a route to the second Service", func() bool { return has(t, router, "203.0.113.2/32") })
	generations := n.kubectl(t, "-n", namespace, "get", "frrconfigurations", "-l", "slb.k8s.ovn.org/bgp-peer=tor",
		"-o", "jsonpath={.items[*].metadata.generation}")
	if generations != "2" {
		t.Errorf("generations of our objects: %s, want one object, created and changed once", generations)
	}
	n.kubectl(t, "patch", "bgppeers.slb.k8s.ovn.org", "tor", "--type=merge", "-p", `{"spec":{"backend":"GoBGP"}}`)
	await.True(t, "no objects of ours", func() bool {
		return n.kubectl(t, "-n", namespace, "get", "frrconfigurations", "-o", "jsonpath={.items[*].metadata.name}") ==
			"fabric"
	})
	stop()
}

// controller runs the product's controller until the returned function is called.
func (n *node) controller(t *testing.T) (stop func()) {
	t.Helper()
	config := n.plane.RESTConfig()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := slb.New(slb.Options{Kube: client, Config: config, NetworkType: slb.OVNKubernetes,
		FRRK8sNamespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// dump logs what explains a failure.
func (n *node) dump(t *testing.T) {
	for _, args := range [][]string{{"get", "bgppeers.slb.k8s.ovn.org", "-o", "jsonpath={.items[*].status}"},
		{"-n", "shop", "get", "services", "-o", "jsonpath={.items[*].status}"},
		{"-n", namespace, "get", "frrconfigurations", "-o", "jsonpath={.items[*].spec}"},
		{"get", "frrnodestates", "-o", "jsonpath={.items[*].status.lastConversionResult}"}} {
		out, err := n.plane.Kubectl(context.WithoutCancel(t.Context()), args...)
		t.Logf("%v (%v): %.1500s", args, err, out)
	}
	text, err := os.ReadFile(n.config)
	t.Logf("frr.conf (%v): %.1500s", err, text)
}

func (n *node) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := n.plane.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// routers starts FRR on a node, 10.77.0.2, and on a router, 10.77.0.1.
func routers(t *testing.T, dir string) (onNode, router frr.Router) {
	t.Helper()
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	var both []frr.Router
	for _, name := range []string{"node", "tor"} {
		r := frr.Router{Name: filepath.Base(dir) + name, Dir: filepath.Join(dir, name), Netns: filepath.Base(dir) + name}
		ip("netns", "add", r.Netns)
		t.Cleanup(func() { ip("netns", "del", r.Netns) })
		both = append(both, r)
	}
	ip("-n", both[0].Netns, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", both[1].Netns)
	for i, r := range both {
		ip("-n", r.Netns, "link", "set", "lo", "up")
		ip("-n", r.Netns, "addr", "add", fmt.Sprintf("10.77.0.%d/24", 2-i), "dev", "eth0")
		ip("-n", r.Netns, "link", "set", "eth0", "up")
		t.Cleanup(func() { _ = r.Kill() })
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return both[0], both[1]
}

// reloadBy loads the configuration that frr-k8s writes to FRR on the node at each SIGHUP, which this process gets. What
// is no longer there stays, except entries of route maps, which is enough for routes that are added.
func reloadBy(t *testing.T, dir string, r frr.Router) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "pid"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range reload {
			text, err := os.ReadFile(filepath.Join(dir, "frr.conf"))
			if err == nil {
				err = r.Configure(context.WithoutCancel(t.Context()), replacing(string(text))...)
			}
			if err != nil {
				t.Errorf("reload FRR: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		signal.Stop(reload)
		close(reload)
		<-done
	})
}

// replacing returns the lines of a configuration that replaces the route maps that it has.
func replacing(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 4 && words[0] == "route-map" {
			lines = append(lines, "no route-map "+words[1])
		}
	}
	slices.Sort(lines)
	return append(slices.Compact(lines), strings.Split(text, "\n")...)
}

func configure(t *testing.T, r frr.Router, lines ...string) {
	t.Helper()
	if err := r.Configure(t.Context(), lines...); err != nil {
		t.Fatal(err)
	}
}

func vtysh(t *testing.T, r frr.Router, command string) string {
	t.Helper()
	out, err := r.Vtysh(t.Context(), "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}

// has reports whether a router has a route from the node, with the community of the advertisement.
func has(t *testing.T, r frr.Router, prefix string) bool {
	t.Helper()
	return strings.Contains(vtysh(t, r, "show bgp ipv4 unicast "+prefix), "Community: 64500:7")
}
