// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/slb"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/scrape"
)

const (
	manifests = "../../dist/manifests"
	// quietPeriod is how long nothing must be written before a test assumes a stable state. What a full pass writes last,
	// up to ten seconds after changes of single Services, is awaited before (settled); a second lies between two writes to
	// the same object.
	quietPeriod = 4 * time.Second
	// ns is the namespace of the tests' Services.
	ns = "shop"
)

// cluster is a control plane that tests share, one after the other.
type cluster struct {
	plane   *controlplane.ControlPlane
	client  kubernetes.Interface
	dynamic dynamic.Interface
	scraper *scrape.Scraper
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	contract.Test(t, "ovsdb-server", "ovsdb-tool", "ovn-nbctl", "ovn-sbctl", "ovn-northd")
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
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ovn-kubernetes", ns} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"crds", "rbac"} {
		c.apply(t, c.kubectl(t, "kustomize", filepath.Join(manifests, part)))
	}
	await.NoError(t, "our kinds are served", plane.ServesKinds)
	if c.scraper, err = scrape.New(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		c.node(t, i)
	}
	return c
}

func (c *cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	// Cleanups call this after the test's context is done.
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

// field returns what kubectl get -o jsonpath=PATH prints of an object without a namespace, or of all objects of a kind
// if the name is empty.
func (c *cluster) field(t *testing.T, resource, name, path string) string {
	t.Helper()
	out, err := c.plane.Get(t.Context(), resource, "", name, path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// node creates a Node with the annotations of OVN-Kubernetes.
func (c *cluster) node(t *testing.T, i int) {
	t.Helper()
	_, err := c.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("n%d", i),
		Annotations: map[string]string{
			"k8s.ovn.org/node-chassis-id":   fmt.Sprintf("chassis-%d", i),
			"k8s.ovn.org/l3-gateway-config": fmt.Sprintf(`{"default":{"mode":"local","ip-addresses":["10.50.0.%d/24","fd00:50::%d/64"]}}`, 10+i, 10+i),
			"k8s.ovn.org/host-cidrs":        fmt.Sprintf(`["10.50.0.%d/24","fd00:50::%d/64"]`, 10+i, 10+i),
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// process is a controller that runs with the permissions of its service account.
type process struct {
	*slb.Controller
	metrics *prometheus.Registry
	stop    func()
}

// account returns a client with the permissions of the controller.
func (c *cluster) account(t *testing.T) (kubernetes.Interface, *rest.Config) {
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
	return client, config
}

// controller runs a controller until stop or the end of the test.
func (c *cluster) controller(t *testing.T, o *ovn, change ...func(*slb.Options)) *process {
	t.Helper()
	client, config := c.account(t)
	options := slb.Options{
		Kube: client, Config: config, Registerer: prometheus.NewRegistry(),
		ClusterSubnets: prefixes("10.244.0.0/16", "fd00:10:244::/48"),
		ServiceSubnets: prefixes("10.96.0.0/16", "fd00:10:96::/112"),
	}
	if o != nil {
		options.NB, options.SB = o.endpoint("nb"), o.endpoint("sb")
	}
	for _, f := range change {
		f(&options)
	}
	p := &process{metrics: options.Registerer.(*prometheus.Registry)}
	var err error
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

// writes returns the number of status writes of a kind with one of the results, or with any if there are none.
func (p *process) writes(t *testing.T, kind string, results ...string) int {
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
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["kind"] == kind && (len(results) == 0 || slices.Contains(results, labels["result"])) {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// service creates a Service with one port and returns the created object.
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

// allAnnounced waits until n Services are announced. On failure, it logs the messages of the other Services and the
// chassis of each gateway port.
func (c *cluster) allAnnounced(t *testing.T, o *ovn, n int) {
	t.Helper()
	var announced int
	var others map[string]int
	defer func() {
		if t.Failed() {
			t.Logf("%d of %d are announced; the others by condition:\n%v\nclaims of gateway ports:\n%s", announced, n,
				others,
				o.sbctl(t, "--columns=logical_port,chassis,requested_chassis,up", "find", "Port_Binding", "type=chassisredirect"))
		}
	}()
	eventually(t, "all are announced", func() bool {
		list, err := c.client.CoreV1().Services(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		announced, others = 0, map[string]int{}
		for _, s := range list.Items {
			if meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionAnnounced) {
				announced++
			} else if is := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionAnnounced); is != nil {
				others[is.Reason+": "+is.Message]++
			}
		}
		return announced == n
	})
}

// endpoints creates EndpointSlices for a Service, as the endpoint slice controller would.
func (c *cluster) endpoints(t *testing.T, service string, addrs ...string) {
	t.Helper()
	for family, kind := range map[bool]discoveryv1.AddressType{true: discoveryv1.AddressTypeIPv4,
		false: discoveryv1.AddressTypeIPv6} {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: service + "-", Namespace: ns,
				Labels: map[string]string{discoveryv1.LabelServiceName: service}},
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
		if _, err := c.client.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), slice,
			metav1.CreateOptions{}); err != nil {
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

// clear deletes the objects that a test created.
func (c *cluster) clear(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c.clearServices(t)
	all := metav1.ListOptions{}
	err := errors.Join(
		c.client.CoreV1().Events(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		c.client.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		c.client.DiscoveryV1().EndpointSlices(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		// The expired Lease of a daemon would make the reports of its node expire in later tests.
		c.client.CoordinationV1().Leases(v1alpha1.GuardsNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	for _, kind := range []string{"ipaddresspools", "l2domains", "bgppeers", "bgpadvertisements", "bfdprofiles",
		"communities", "bgpnodestatuses"} {
		c.deleteAll(t, kind)
	}
	if err != nil {
		t.Error(err)
	}
}

// deleteAll deletes all objects of a kind of ours.
func (c *cluster) deleteAll(t *testing.T, resource string) {
	t.Helper()
	objects := c.dynamic.Resource(v1alpha1.GroupVersion().WithResource(resource))
	if err := objects.DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{},
		metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func (c *cluster) clearServices(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	services, err := c.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var deleting errgroup.Group
	deleting.SetLimit(16)
	for _, s := range services.Items {
		if s.Namespace == metav1.NamespaceDefault {
			continue // the API server's own
		}
		deleting.Go(func() error {
			return c.client.CoreV1().Services(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{})
		})
	}
	if err := deleting.Wait(); err != nil {
		t.Error(err)
	}
}
