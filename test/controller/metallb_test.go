// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// metalLB is a configuration of MetalLB for two segments' worth of addresses, and its controller.
const metalLB = `
apiVersion: v1
kind: Namespace
metadata: {name: metallb-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: metallb-system, name: controller, labels: {app: metallb, component: controller}}
spec:
  selector: {matchLabels: {app: metallb, component: controller}}
  template:
    metadata: {labels: {app: metallb, component: controller}}
    spec: {containers: [{name: controller, image: metallb}]}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {namespace: metallb-system, name: lan, labels: {zone: east, app.kubernetes.io/instance: metallb}}
spec: {addresses: [10.50.0.100-10.50.0.149, "fd00:50::100-fd00:50::1ff"]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {namespace: metallb-system, name: lan}
spec: {ipAddressPoolSelectors: [{matchLabels: {zone: east}}]}
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {namespace: metallb-system, name: tor}
spec: {myASN: 64512, peerASN: 64513, peerAddress: 10.99.0.1, bfdProfile: fast}
---
apiVersion: metallb.io/v1beta1
kind: BFDProfile
metadata: {namespace: metallb-system, name: fast}
spec: {receiveInterval: 100, transmitInterval: 100}
---
apiVersion: metallb.io/v1beta1
kind: Community
metadata: {namespace: metallb-system, name: names}
spec: {communities: [{name: VPN_only, value: "65000:1"}]}
---
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {namespace: metallb-system, name: routed}
spec: {ipAddressPools: [other], communities: [VPN_only], peers: [tor]}
`

// slb runs kubectl slb as an administrator. It returns its output.
func (c *cluster) slb(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary := built(t, "go-controller/cmd/kubectl-slb", c.plane.Dir())
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	return string(out), err
}

// The API server admits the objects of each golden of the conversion.
func conversionsAreAdmitted(t *testing.T, c *cluster) {
	files, err := filepath.Glob("../../go-controller/internal/metallb/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens (%v)", err)
	}
	goldens := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
		want := string(archive.Files[at].Data)
		if !strings.Contains(want, "\nkind: ") {
			continue // errors only
		}
		goldens++
		if err := c.plane.DryRun(t.Context(), want); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Logf("objects of %d goldens", goldens)
}

// allocated creates Services with addresses that MetalLB wrote into their statuses: web-0 has the last address of the
// pool, and every fifth Service also has an IPv6 address. The last two share an address. It returns the addresses by
// name.
func (c *cluster) allocated(t *testing.T, n int) map[string]string {
	t.Helper()
	want := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		ingress := []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("10.50.0.%d", 149-min(i, n-2))}}
		if i%5 == 0 {
			ingress = append(ingress, corev1.LoadBalancerIngress{IP: fmt.Sprintf("fd00:50::1%02x", 255-i)})
		}
		c.endpoints(t, name, fmt.Sprintf("10.244.1.%d", 10+i), fmt.Sprintf("fd00:10:244:1::%d", 10+i))
		s := c.service(t, name, func(s *corev1.Service) {
			s.Annotations = map[string]string{"metallb.io/ip-allocated-from-pool": "lan"}
			if i >= n-2 {
				s.Annotations["metallb.universe.tf/allow-shared-ip"] = "key"
				s.Spec.Ports[0].Port += int32(i)
			}
			if len(ingress) == 2 {
				policy := corev1.IPFamilyPolicyRequireDualStack
				s.Spec.IPFamilyPolicy = &policy
			}
		})
		s.Status.LoadBalancer.Ingress = ingress
		if _, err := c.client.CoreV1().Services(ns).UpdateStatus(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		want[name] = ingressText(s)
	}
	return want
}

func ingressText(s *corev1.Service) string {
	var addrs []string
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		addrs = append(addrs, ingress.IP)
	}
	return strings.Join(addrs, " ")
}

// watchAddresses watches the Services until the returned function is called, which returns all changes of addresses,
// all writes that changed nothing, and the number of all writes. It waits until the watch has delivered what the
// Services are by then.
func (c *cluster) watchAddresses(t *testing.T, want map[string]string) func() (problems []string, writes int) {
	t.Helper()
	list, err := c.client.CoreV1().Services(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards what the watch has delivered
	last, versions := map[string]string{}, map[string]string{}
	for _, s := range list.Items {
		last[s.Name], versions[s.Name] = contentOf(t, &s), s.ResourceVersion
	}
	ctx, cancel := context.WithCancel(t.Context())
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.client.CoreV1().Services(ns).Watch(ctx, options)
		}})
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	writes := 0
	var reading sync.WaitGroup
	reading.Go(func() {
		take := func(e watch.Event) {
			mu.Lock()
			defer mu.Unlock()
			s, ok := e.Object.(*corev1.Service)
			if !ok || e.Type != watch.Modified {
				problems = append(problems, fmt.Sprintf("%s %v", e.Type, e.Object))
				return
			}
			writes++
			if got := ingressText(s); got != want[s.Name] {
				problems = append(problems, fmt.Sprintf("%s: %s, not %s", s.Name, got, want[s.Name]))
			}
			is := contentOf(t, s)
			if is == last[s.Name] {
				problems = append(problems, fmt.Sprintf("%s was written as it was: %s", s.Name, is))
			}
			last[s.Name], versions[s.Name] = is, s.ResourceVersion
		}
		for e := range watcher.ResultChan() {
			take(e)
		}
		if ctx.Err() == nil {
			problems = append(problems, "the watch ended")
		}
	})
	return func() ([]string, int) {
		t.Helper()
		await.NoError(t, "the watch has delivered the last write", func(ctx context.Context) error {
			list, err := c.client.CoreV1().Services(ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range list.Items {
				if versions[s.Name] != s.ResourceVersion {
					return fmt.Errorf("%s has version %s, the last event %s", s.Name, s.ResourceVersion, versions[s.Name])
				}
			}
			return nil
		})
		cancel()
		reading.Wait()
		return problems, writes
	}
}

// contentOf returns the status of a Service without its times.
func contentOf(t *testing.T, s *corev1.Service) string {
	t.Helper()
	status := s.Status.DeepCopy()
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	text, err := json.Marshal(status)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// All addresses of MetalLB's Services stay the same through the whole migration. The controller runs from the start.
func metalLBIsImportedWithItsAddresses(t *testing.T, c *cluster) {
	const n = 50
	c.kubectl(t, "apply", "-f", "testdata/metallb-kinds.yaml")
	t.Cleanup(func() { c.kubectl(t, "delete", "-f", "testdata/metallb-kinds.yaml") })
	await.NoError(t, "MetalLB's kinds are served", c.plane.ServesKinds)
	c.apply(t, metalLB)
	want := c.allocated(t, n)
	observed := c.watchAddresses(t, want)
	o := databases(t)
	p := c.controller(t, o)
	for name := range want {
		c.condition(t, name, v1alpha1.ConditionAllocated, v1alpha1.ReasonForeignAddress)
	}
	c.settled(t, func() [2]int { return [2]int{p.writes(t, "Service"), o.transactions(t)} })
	if rows := o.loadBalancers(t); len(rows) != 0 {
		t.Errorf("load balancers before the import: %v", rows)
	}

	importing := []string{"import", "--kubeconfig", c.plane.AdminKubeconfig(),
		"--segment", "physnet=10.50.0.0/24@10.50.0.1,fd00:50::/64@fd00:50::1", "metallb"}
	out, err := c.slb(t, importing...)
	if err == nil || !strings.Contains(out, "MetalLB's controller (Deployment controller) runs") {
		t.Errorf("while MetalLB's controller runs (%v):\n%s", err, out)
	}
	c.kubectl(t, "-n", "metallb-system", "scale", "deployment", "controller", "--replicas=0")
	if out, err = c.slb(t, importing...); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, line := range []string{"l2domains.slb.k8s.ovn.org/physnet created",
		"ipaddresspools.slb.k8s.ovn.org/lan created",
		"bgppeers.slb.k8s.ovn.org/tor created", "bgpadvertisements.slb.k8s.ovn.org/routed created",
		"bfdprofiles.slb.k8s.ovn.org/fast created", "communities.slb.k8s.ovn.org/names created",
		"warning: BGPPeer/tor: spec.ebgpMultiHop: is set to true: peerAddress 10.99.0.1 is on no network of a node",
		"note: 50 of 50 Services with addresses keep them"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	eventually(t, "each shard has a gateway port", func() bool { return len(o.gatewayPorts(t)) == 8 })
	o.claim(t, "chassis-1")
	c.allAnnounced(t, o, n)
	for name := range want {
		for _, ingress := range c.get(t, name).Status.LoadBalancer.Ingress {
			if ingress.IPMode == nil || *ingress.IPMode != corev1.LoadBalancerIPModeVIP {
				t.Errorf("%s: ipMode %v", name, ingress.IPMode)
			}
		}
	}
	counts := func() [2]int { return [2]int{p.writes(t, "Service"), o.transactions(t)} }
	c.settled(t, counts)
	problems, written := observed()
	if len(problems) > 0 {
		t.Errorf("addresses changed, or writes changed nothing: %v", problems)
	}
	// How many states of OVN a Service goes through depends on the machine. Requests that change nothing are no writes to
	// the API server, so a watch alone does not show them.
	if n := p.writes(t, "Service", "ok"); n > written {
		t.Errorf("%d requests wrote only %d states of Services", n, written)
	}

	if out, err = c.slb(t, importing...); err != nil || strings.Contains(out, "created") ||
		strings.Contains(out, "configured") || strings.Count(out, "unchanged") != 6 {
		t.Errorf("a second import (%v):\n%s", err, out)
	}
	p.stop()
	const versions = "{.items[*].metadata.resourceVersion}"
	before := c.field(t, "services", "", versions)
	p = c.controller(t, o)
	eventually(t, "the new process is ready", func() bool { return p.Healthy() == nil })
	c.settled(t, counts)
	if after := c.field(t, "services", "", versions); after != before {
		t.Errorf("Services were written after a restart: %s, and then %s", before, after)
	}
}
