// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/transport"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	kubefrr "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb"
	importer "github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/metallb/cluster"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/frrk8s/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/frr"
)

// fabric is a site with the steps of tests.
type fabric struct{ *site.Site }

// metalLB is a configuration of MetalLB. The detection time of BFD is far longer than a busy machine stalls.
const metalLB = `
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: speaker, labels: {app: metallb}}, spec: {template: {spec: {
  containers: [{name: speaker, env: [{name: METALLB_BGP_TYPE, value: frr-k8s}]}]}}}}
---
{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: far},
  spec: {addresses: [203.0.113.1-203.0.113.9]}}
---
{apiVersion: metallb.io/v1beta1, kind: BFDProfile, metadata: {name: slow},
  spec: {receiveInterval: 1000, transmitInterval: 1000, detectMultiplier: 100}}
---
{apiVersion: metallb.io/v1beta2, kind: BGPPeer, metadata: {name: tor},
  spec: {myASN: 64500, peerASN: 64512, peerAddress: 10.77.0.1, connectTime: 1s, bfdProfile: slow}}
---
{apiVersion: metallb.io/v1beta1, kind: BGPAdvertisement, metadata: {name: far},
  spec: {ipAddressPools: [far], communities: ["64500:7"]}}
`

// metalLBConfigurations returns what the speakers of MetalLB v0.15 write for this configuration, with all fields that
// these have (internal/bgp/frrk8s), and a Service with the address 203.0.113.1.
func metalLBConfigurations(nodes []*site.Node) string {
	var out []string
	for _, n := range nodes {
		out = append(out, fmt.Sprintf(`
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {namespace: %s, name: metallb-%s}
spec:
  bgp:
    routers:
    - asn: 64500
      neighbors:
      - {asn: 64512, address: 10.77.0.1, port: 179, passwordSecret: {}, connectTime: 1s, bfdProfile: slow,
        toAdvertise: {allowed: {prefixes: [203.0.113.1/32]},
          withCommunity: [{prefixes: [203.0.113.1/32], community: "64500:7"}]},
        toReceive: {allowed: {}}}
      prefixes: [203.0.113.1/32]
    bfdProfiles:
    - {name: slow, receiveInterval: 1000, transmitInterval: 1000, detectMultiplier: 100, echoMode: false,
      passiveMode: false}
  raw: {}
  nodeSelector: {matchLabels: {kubernetes.io/hostname: %[2]s}}
`, site.Namespace, n.Name))
	}
	return strings.Join(out, "---")
}

// cluster returns the nodes, and a namespace for Services.
func cluster(nodes []*site.Node) string {
	out := []string{"{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n"}
	for _, n := range nodes {
		out = append(out, fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata:
  name: %s
  labels: {kubernetes.io/hostname: %[1]s}
  annotations: {k8s.ovn.org/l3-gateway-config: '{"default":{"mode":"local","ip-addresses":["%s/24"]}}'}
`, n.Name, n.Addr))
	}
	return strings.Join(out, "---")
}

// service returns a Service with an endpoint on a node.
func service(name, policy, node string) string {
	return fmt.Sprintf(`
{apiVersion: v1, kind: Service, metadata: {namespace: shop, name: %[1]s},
  spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, externalTrafficPolicy: %[2]s, ports: [{port: 80}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shop, name: %[1]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: [10.244.1.10], nodeName: %[3]s, conditions: {ready: true}}]
`, name, policy, node)
}

// configureRouter configures the router, which waits for the nodes to dial: if both sides dial once a second on a busy
// machine, each may end the connection of the other one for minutes.
func (fb *fabric) configureRouter(t *testing.T) {
	t.Helper()
	lines := []string{"bfd", " profile slow", "  receive-interval 1000", "  transmit-interval 1000",
		"  detect-multiplier 100", "  exit", " exit", "router bgp 64512", " bgp router-id 10.255.0.1",
		" no bgp ebgp-requires-policy"}
	for _, n := range fb.Nodes {
		neighbor := " neighbor " + n.Addr.String()
		lines = append(lines, neighbor+" remote-as 64500", neighbor+" passive", neighbor+" bfd",
			neighbor+" bfd profile slow")
	}
	if err := fb.Router.Configure(t.Context(), lines...); err != nil {
		t.Fatal(err)
	}
}

// importMetalLB does what `kubectl slb import metallb` does. Nothing may be left out.
func (fb *fabric) importMetalLB(t *testing.T) {
	t.Helper()
	objects, err := metallb.Parse([]byte(metalLB + "---" + metalLBConfigurations(fb.Nodes)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(fb.Plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	result := metallb.Convert(metallb.Input{Objects: objects})
	for _, f := range result.Findings {
		if f.Severity != metallb.Note && !strings.Contains(f.Message, "--frr-k8s-namespace="+site.Namespace) {
			t.Errorf("finding %s", f)
		}
	}
	for _, o := range result.Objects {
		if _, err := importer.Apply(t.Context(), client, o); err != nil {
			t.Fatal(err)
		}
	}
}

// controller runs the product's controller until the returned function is called. Its requests go through wrappers.
func (fb *fabric) controller(t *testing.T, wrappers ...transport.WrapperFunc) (stop func()) {
	t.Helper()
	config := fb.Plane.RESTConfig()
	for _, w := range wrappers {
		config.Wrap(w)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := slb.New(slb.Options{Kube: client, Config: config, NetworkType: slb.OVNKubernetes,
		FRRK8sNamespace: site.Namespace})
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

// leaving is the community GRACEFUL_SHUTDOWN (RFC 8326).
const leaving = "65535:0"

// untilLeaving returns a wrapper that fails all writes of FRRConfigurations after one with that community.
func untilLeaving() transport.WrapperFunc {
	var mu sync.Mutex
	over := false
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/frrconfigurations") {
				return next.RoundTrip(r)
			}
			mu.Lock()
			defer mu.Unlock()
			if over {
				return nil, errors.New("the test allows no more writes")
			}
			var body []byte
			if r.Body != nil {
				var err error
				if body, err = io.ReadAll(r.Body); err != nil {
					return nil, err
				}
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			response, err := next.RoundTrip(r)
			over = err == nil && response.StatusCode < http.StatusMultipleChoices && bytes.Contains(body, []byte(leaving))
			return response, err
		})
	}
}

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ours returns our objects.
func (fb *fabric) ours(t *testing.T) []kubefrr.Configuration {
	t.Helper()
	clients, err := kube.NewFRRClients(fb.Plane.RESTConfig(), site.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	list, err := clients.Configurations.List(t.Context(), metav1.ListOptions{LabelSelector: frrapi.LabelPeer})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// field returns what kubectl get -o jsonpath=PATH prints of an object, or without a name of all objects of a kind.
func (fb *fabric) field(t *testing.T, resource, namespace, name, path string) string {
	t.Helper()
	out, err := fb.Plane.Get(t.Context(), resource, namespace, name, path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// generations returns the generations of our objects by their names.
func (fb *fabric) generations(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range fb.ours(t) {
		out[o.Name] = fmt.Sprintf("%s/%d", o.UID, o.Generation)
	}
	return out
}

// changed returns the names of our objects that are not what they were.
func (fb *fabric) changed(t *testing.T, was map[string]string) []string {
	t.Helper()
	is := fb.generations(t)
	var out []string
	for name := range is {
		if was[name] != is[name] {
			out = append(out, name)
		}
	}
	for name := range was {
		if is[name] == "" {
			out = append(out, name)
		}
	}
	return out
}

// webhookCalls returns how many objects the webhook has admitted and refused, as the API server counts them. A request
// that ended before the webhook answered is neither: the tests stop controllers.
func (fb *fabric) webhookCalls(t *testing.T) (admitted, refused int) {
	t.Helper()
	const calls, rejections = "apiserver_admission_webhook_request_total{", "apiserver_admission_webhook_rejection_count{"
	for line := range strings.Lines(fb.kubectl(t, "get", "--raw", "/metrics")) {
		answered := strings.HasPrefix(line, calls) && strings.Contains(line, `rejected="false"`)
		rejected := strings.HasPrefix(line, rejections) && strings.Contains(line, `error_type="no_error"`)
		if !answered && !rejected || !strings.Contains(line, site.Webhook) {
			continue
		}
		n, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1 : len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		if rejected {
			refused += n
		} else {
			admitted += n
		}
	}
	return admitted, refused
}

// hops returns the gateways of a route in the router's kernel, sorted.
func (fb *fabric) hops(t *testing.T, prefix string) []string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "ip", "-n", fb.Router.Netns, "route", "show", prefix).Output()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	words := strings.Fields(string(text))
	for i, w := range words[:max(0, len(words)-1)] {
		if w == "via" {
			out = append(out, words[i+1])
		}
	}
	slices.Sort(out)
	return out
}

// pathState returns the communities of a prefix as the router has it from a node, empty if it has none from it.
func (fb *fabric) pathState(t *testing.T, prefix, node string) string {
	t.Helper()
	var is struct {
		Paths []struct {
			Community struct{ String string }
			Peer      struct{ PeerID string }
		}
	}
	if err := fb.Router.Show(t.Context(), "show bgp ipv4 unicast "+prefix+" json", &is); err != nil {
		t.Fatal(err)
	}
	for _, p := range is.Paths {
		if p.Peer.PeerID == node {
			return p.Community.String
		}
	}
	return ""
}

func (fb *fabric) apply(t *testing.T, texts ...string) {
	t.Helper()
	if err := fb.Plane.Apply(t.Context(), strings.Join(texts, "---")); err != nil {
		t.Fatal(err)
	}
}

func (fb *fabric) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := fb.Plane.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dump logs what explains a failure.
func (fb *fabric) dump(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, args := range [][]string{{"get", "bgppeers.slb.k8s.ovn.org", "-o", "jsonpath={.items[*].status}"},
		{"-n", "shop", "get", "services", "-o", "jsonpath={.items[*].status}"},
		{"-n", site.Namespace, "get", "frrconfigurations", "-o", "jsonpath={.items[*].spec}"},
		{"get", "frrnodestates", "-o", "jsonpath={.items[*].status.lastConversionResult}"}} {
		out, err := fb.Plane.Kubectl(ctx, args...)
		t.Logf("%v (%v): %.1500s", args, err, out)
	}
	for _, n := range fb.Nodes {
		text, err := os.ReadFile(n.Config)
		t.Logf("%s (%v): %.1500s", n.Config, err, text)
		for _, log := range n.Logs() {
			text, err := os.ReadFile(log)
			t.Logf("%s (%v): %s", log, err, text[max(0, len(text)-1500):])
		}
	}
	for _, r := range []frr.Router{fb.Nodes[0].FRR, fb.Router} {
		out, err := r.Vtysh(ctx, "-c", "show bgp ipv4 unicast summary", "-c", "show bgp ipv4 unicast", "-c",
			"show running-config").CombinedOutput()
		t.Logf("%s (%v): %.3000s", r.Name, err, out)
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
