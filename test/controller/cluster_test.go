// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const (
	manifests = "../../dist/manifests"
	// patience is how long anything may take before a test gives up.
	patience = 20 * time.Second
	// quiet is how long nothing must happen for a test to believe that nothing will.
	quiet = 1500 * time.Millisecond
	// ns is where tests put their Services.
	ns = "shop"
)

// cluster is a control plane and OVN's databases that tests share, one after the other.
type cluster struct {
	plane  *controlplane.ControlPlane
	client kubernetes.Interface
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	for _, program := range []string{"ovsdb-server", "ovsdb-tool", "ovn-nbctl", "ovn-sbctl", "ovn-northd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is needed: apt-get install ovn-central", program)
		}
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Config{Dir: t.TempDir(), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	config := plane.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{plane: plane, client: client}
	for _, namespace := range []string{"ovn-kubernetes", ns} {
		c.kubectl(t, "create", "namespace", namespace)
	}
	c.kubectl(t, "apply", "-k", filepath.Join(manifests, "crds"))
	c.kubectl(t, "wait", "--for=condition=Established", "crd/ipaddresspools.slb.k8s.ovn.org", "crd/l2domains.slb.k8s.ovn.org",
		"crd/bgppeers.slb.k8s.ovn.org")
	c.kubectl(t, "apply", "-k", filepath.Join(manifests, "rbac"))
	for i := 1; i <= 3; i++ {
		c.node(t, i)
	}
	return c
}

func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	// Cleanups ask, too, when the test's context has ended.
	out, err := c.plane.Kubectl(context.WithoutCancel(t.Context()), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	if err := c.plane.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

// node is what OVN-Kubernetes makes of a machine.
func (c *cluster) node(t *testing.T, i int) {
	t.Helper()
	_, err := c.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("n%d", i),
		Annotations: map[string]string{
			"k8s.ovn.org/node-chassis-id": fmt.Sprintf("chassis-%d", i),
			"k8s.ovn.org/host-cidrs":      fmt.Sprintf(`["10.50.0.%d/24","fd00:50::%d/64"]`, 10+i, 10+i),
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// ovn is a pair of databases of a test's own, with ovn-northd between them.
type ovn struct {
	dir string
}

func (o *ovn) endpoint(name string) slb.Endpoint {
	return slb.Endpoint{Address: "unix:" + filepath.Join(o.dir, name+".sock")}
}

func databases(t *testing.T) *ovn {
	t.Helper()
	dir := t.TempDir()
	o := &ovn{dir: dir}
	t.Cleanup(func() {
		if err := proc.KillRecorded(dir); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"nb", "sb"} {
		o.serve(t, name)
	}
	start(t, proc.Spec{Name: "northd", Dir: dir, Args: []string{
		"ovn-northd", "--ovnnb-db=" + o.endpoint("nb").Address, "--ovnsb-db=" + o.endpoint("sb").Address,
		"--unixctl=" + filepath.Join(dir, "northd.ctl"), "-vsyslog:off",
	}})
	// What OVN-Kubernetes has of the join network.
	o.nbctl(t, "lr-add", "ovn_cluster_router", "--", "ls-add", "join",
		"--", "lrp-add", "ovn_cluster_router", "rtoj-ovn_cluster_router", "0a:58:64:40:00:01", "100.64.0.1/16", "fd98::1/64",
		"--", "lsp-add", "join", "jtor-ovn_cluster_router", "--", "lsp-set-type", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-addresses", "jtor-ovn_cluster_router", "router",
		"--", "lsp-set-options", "jtor-ovn_cluster_router", "router-port=rtoj-ovn_cluster_router")
	for i := 1; i <= 3; i++ {
		o.sbctl(t, "chassis-add", fmt.Sprintf("chassis-%d", i), "geneve", fmt.Sprintf("192.0.2.%d", i))
	}
	return o
}

// serve creates the database if it is not there, and serves it.
func (o *ovn) serve(t *testing.T, name string) {
	t.Helper()
	file, socket := filepath.Join(o.dir, name+".db"), filepath.Join(o.dir, name+".sock")
	if _, err := os.Stat(file); os.IsNotExist(err) {
		run(t, "ovsdb-tool", "create", file, "/usr/share/ovn/ovn-"+name+".ovsschema")
	}
	start(t, proc.Spec{Name: name, Dir: o.dir,
		Args: []string{"ovsdb-server", file, "--remote=punix:" + socket, "--unixctl=" + socket + ".ctl", "-vsyslog:off"},
		Ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})
}

func (o *ovn) nbctl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "ovn-nbctl", append([]string{"--db=" + o.endpoint("nb").Address, "--timeout=10"}, args...)...)
}

func (o *ovn) sbctl(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "ovn-sbctl", append([]string{"--db=" + o.endpoint("sb").Address, "--timeout=10"}, args...)...)
}

// transactions counts what was ever written to the northbound database: the records of its file.
func (o *ovn) transactions(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(o.dir, "nb.db"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\nOVSDB JSON "))
}

// claim does what ovn-controller of a chassis would: it claims every gateway port of ours.
func (o *ovn) claim(t *testing.T, chassis string) {
	t.Helper()
	for port := range strings.FieldsSeq(o.sbctl(t, "--bare", "--columns=logical_port", "find", "Port_Binding", "type=chassisredirect")) {
		o.sbctl(t, "--", "--if-exists", "lsp-unbind", port, "--", "lsp-bind", port, chassis)
	}
}

func (o *ovn) loadBalancers(t *testing.T) []string {
	t.Helper()
	return strings.Fields(o.nbctl(t, "--bare", "--columns=name", "list", "Load_Balancer"))
}

// kill ends a database the hard way; serve brings it back.
func kill(t *testing.T, o *ovn, name string) {
	t.Helper()
	p, err := proc.Find(o.dir, name)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, spec proc.Spec) {
	t.Helper()
	if _, err := proc.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// process is a controller that runs with the rights of its service account.
type process struct {
	*slb.Controller
	metrics *prometheus.Registry
	stop    func()
}

// controller runs one until stop or the end of the test.
func (c *cluster) controller(t *testing.T, o *ovn) *process {
	t.Helper()
	path, err := c.plane.ServiceAccountKubeconfig("ovn-kubernetes", "ovnkube-slb")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	options := slb.Options{
		Kube: client, Config: config, Registerer: prometheus.NewRegistry(),
		ClusterSubnets: prefixes("10.244.0.0/16", "fd00:10:244::/48"),
		ServiceSubnets: prefixes("10.96.0.0/16", "fd00:10:96::/112"),
	}
	if o != nil {
		options.NB, options.SB = o.endpoint("nb"), o.endpoint("sb")
	}
	p := &process{metrics: options.Registerer.(*prometheus.Registry)}
	if p.Controller, err = slb.New(options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	p.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(p.stop)
	return p
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// writes counts status writes of a kind, whatever became of them.
func (p *process) writes(t *testing.T, kind string) int {
	t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != "ovnkube_slb_status_writes_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "kind" && l.GetValue() == kind {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return int(total)
}

// service creates one with a port and returns what the API server made of it.
func (c *cluster) service(t *testing.T, name string, change ...func(*corev1.Service)) *corev1.Service {
	t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeLoadBalancer,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	for _, f := range change {
		f(s)
	}
	created, err := c.client.CoreV1().Services(ns).Create(t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// endpoints gives a Service backends, as the endpoint slice controller would.
func (c *cluster) endpoints(t *testing.T, service string, addrs ...string) {
	t.Helper()
	for family, kind := range map[bool]discoveryv1.AddressType{true: discoveryv1.AddressTypeIPv4, false: discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{GenerateName: service + "-", Namespace: ns, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: kind,
		}
		name, port, ready, node := "http", int32(8080), true, "n1"
		slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port}}
		for _, a := range addrs {
			if netip.MustParseAddr(a).Is4() == family {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{a}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
			}
		}
		if len(slice.Endpoints) == 0 {
			continue
		}
		if _, err := c.client.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *cluster) get(t *testing.T, name string) *corev1.Service {
	t.Helper()
	s, err := c.client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *cluster) delete(t *testing.T, name string) {
	t.Helper()
	if err := c.client.CoreV1().Services(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// clear removes what a test made.
func (c *cluster) clear(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	services, err := c.client.CoreV1().Services(ns).List(ctx, metav1.ListOptions{})
	errs := []error{err}
	for _, s := range services.Items {
		errs = append(errs, c.client.CoreV1().Services(ns).Delete(ctx, s.Name, metav1.DeleteOptions{}))
	}
	errs = append(errs,
		c.client.CoreV1().Events(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		c.client.DiscoveryV1().EndpointSlices(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	c.kubectl(t, "delete", "ipaddresspools,l2domains,bgppeers", "--all")
}

// event waits for one about a Service and returns its message.
func (c *cluster) event(t *testing.T, service, reason string) string {
	t.Helper()
	var message string
	eventually(t, fmt.Sprintf("event %s about %s", reason, service), func() bool {
		list, err := c.client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.InvolvedObject.Name == service && e.Reason == reason {
				message = e.Message
				return true
			}
		}
		return false
	})
	return message
}

// addresses waits until a Service has some and returns them with its condition Allocated.
func (c *cluster) addresses(t *testing.T, name string) []string {
	t.Helper()
	var s *corev1.Service
	eventually(t, name+" has an address", func() bool {
		s = c.get(t, name)
		return len(s.Status.LoadBalancer.Ingress) > 0
	})
	var out []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IPMode == nil || *i.IPMode != corev1.LoadBalancerIPModeVIP {
			t.Errorf("%s: ipMode of %s: %v, want VIP", name, i.IP, i.IPMode)
		}
		out = append(out, i.IP)
	}
	return out
}

// condition waits until a condition has a reason and returns it.
func (c *cluster) condition(t *testing.T, name, kind, reason string) metav1.Condition {
	t.Helper()
	var last *metav1.Condition
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		last = meta.FindStatusCondition(c.get(t, name).Status.Conditions, kind)
		if last != nil && last.Reason == reason {
			return *last
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: condition %s never had reason %s; it is %+v", name, kind, reason, last)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

// settled waits until nothing has been written for a while, and returns the counts.
func settled(t *testing.T, counts func() [2]int) [2]int {
	t.Helper()
	last, since := counts(), time.Now()
	eventually(t, "nothing more is written", func() bool {
		if now := counts(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet
	})
	return last
}
