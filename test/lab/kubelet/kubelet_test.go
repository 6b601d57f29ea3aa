// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/responder"
)

// TestMain runs the responder if the test program is called as one, like the lab's command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "responder" {
		if err := responder.Main(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func nodeIPs(name string) []netip.Addr {
	number := name[len(name)-1] - '0'
	return []netip.Addr{netip.AddrFrom4([4]byte{172, 18, 0, number}), netip.MustParseAddr(fmt.Sprintf("fd00:172:18::%d",
		number))}
}

// cluster is a control plane with the nodes n1 and n2, and an agent that can be stopped and started.
type cluster struct {
	*testing.T
	cp     *controlplane.ControlPlane
	client kubernetes.Interface
	net    *islands
	dir    string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	contract.TestAsRoot(t, "ip", "curl")
	dir := t.TempDir()
	cp, err := controlplane.Start(t.Context(), controlplane.Config{Dir: filepath.Join(dir, "cp"), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		T: t, cp: cp, client: client, dir: filepath.Join(dir, "pods"),
		net: &islands{prefix: fmt.Sprintf("slbk%d-", os.Getpid()), ips: make(map[Pod][]netip.Addr)},
	}
	for _, name := range []string{"n1", "n2"} {
		netns := c.net.prefix + name
		if err := addNetns(t.Context(), netns, nodeIPs(name)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := ip(context.WithoutCancel(t.Context()), "netns", "del", netns); err != nil {
				t.Error(err)
			}
		})
		if err := Register(t.Context(), client, Node{
			Name: name, Labels: map[string]string{"zone": name}, IPs: nodeIPs(name),
			PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24"), netip.MustParsePrefix("fd00:10:244::/64")},
		}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // Also after a failure, no process may remain in a namespace.
		if err := proc.KillRecorded(c.dir); err != nil {
			t.Error(err)
		}
		for pod := range c.net.ips {
			if err := ip(context.WithoutCancel(t.Context()), "netns", "del", c.net.netns(pod)); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// runAgent starts the agent and returns a function that stops it.
func (c *cluster) runAgent() func() {
	c.Helper()
	self, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Client: c.client, Network: c.net, Dir: c.dir, Responder: []string{self, "responder"}})
	}()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.Error(err)
		}
	})
}

// readyEndpoints counts the ready addresses of the Service by family, in the slices that the real controller writes.
func (c *cluster) readyEndpoints(service string) (map[discoveryv1.AddressType]int, error) {
	slices, err := c.client.DiscoveryV1().EndpointSlices("default").List(c.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return nil, err
	}
	count := make(map[discoveryv1.AddressType]int)
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if *endpoint.Conditions.Ready {
				count[slice.AddressType]++
			}
		}
	}
	return count, nil
}

func (c *cluster) wantReady(service string, want int) {
	c.Helper()
	await.NoError(c, fmt.Sprintf("%d ready endpoints a family", want), func(context.Context) error {
		got, err := c.readyEndpoints(service)
		if err == nil && (got[discoveryv1.AddressTypeIPv4] != want || got[discoveryv1.AddressTypeIPv6] != want) {
			err = fmt.Errorf("ready: %v, want %d each", got, want)
		}
		return err
	})
}

func (c *cluster) pods(app string) []corev1.Pod {
	c.Helper()
	list, err := c.client.CoreV1().Pods("default").List(c.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		c.Fatal(err)
	}
	return list.Items
}

// ask sends a request from inside the Pod's namespace to each of its addresses.
func (c *cluster) ask(pod corev1.Pod, port int) {
	c.Helper()
	for _, podIP := range pod.Status.PodIPs {
		addr := netip.MustParseAddr(podIP.IP)
		url := "http://" + netip.AddrPortFrom(addr, uint16(port)).String()
		netns := c.net.netns(podOf(&pod))
		out, err := exec.CommandContext(c.Context(), "ip", "netns", "exec", netns, "curl", "-gsS", "--noproxy", "*",
			"--max-time", fmt.Sprint(await.Limit.Seconds()), url).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "pod="+pod.Name+" client=") {
			c.Errorf("%s answers %q, %v", url, out, err)
		}
	}
}

const manifests = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: responder, ports: [{containerPort: 8080}, {containerPort: 5353, protocol: UDP}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ipFamilyPolicy: RequireDualStack, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: host, labels: {app: host}}
spec:
  hostNetwork: true
  nodeSelector: {zone: n2}
  containers: [{name: host, image: responder, ports: [{containerPort: 9090, hostPort: 9090}]}]
`

func TestDeploymentIsServed(t *testing.T) {
	c := newCluster(t)
	stop := c.runAgent()
	defer func() { stop() }()
	if err := c.cp.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	c.wantReady("web", 4)

	pods := c.pods("web")
	perNode := make(map[string]int)
	for _, pod := range pods {
		perNode[pod.Spec.NodeName]++
		c.ask(pod, 8080)
	}
	if perNode["n1"] != 2 || perNode["n2"] != 2 {
		t.Errorf("Pods a node = %v, want two each", perNode)
	}
	await.NoError(c, "host network Pod runs", func(context.Context) error {
		host := c.pods("host")[0]
		if host.Status.Phase != corev1.PodRunning || host.Spec.NodeName != "n2" || host.Status.PodIP != "172.18.0.2" {
			return fmt.Errorf("%s on %s with %s", host.Status.Phase, host.Spec.NodeName, host.Status.PodIP)
		}
		return nil
	})
	c.ask(c.pods("host")[0], 9090)

	if _, err := c.cp.Kubectl(t.Context(), "annotate", "pod", pods[0].Name, ReadyAnnotation+"=false"); err != nil {
		t.Fatal(err)
	}
	c.wantReady("web", 3)
	if _, err := c.cp.Kubectl(t.Context(), "annotate", "pod", pods[0].Name, ReadyAnnotation+"-"); err != nil {
		t.Fatal(err)
	}
	c.wantReady("web", 4)
	for _, ready := range []bool{false, true} {
		if err := SetNodeReady(t.Context(), c.client, "n1", ready); err != nil {
			t.Fatal(err)
		}
		c.wantReady("web", map[bool]int{false: 2, true: 4}[ready])
	}

	stop = c.restartAgent(stop)

	if _, err := c.cp.Kubectl(t.Context(), "delete", "deployment/web", "pod/host", "--wait"); err != nil {
		t.Fatal(err)
	}
	await.NoError(c, "nothing is left", func(context.Context) error {
		left, err := proc.Load(c.dir)
		entries, _ := os.ReadDir(c.dir)
		if err == nil && (len(left) > 0 || len(entries) > 0 || c.net.count() > 0 || len(c.pods("web")) > 0) {
			err = fmt.Errorf("processes %d, records %d, namespaces %d", len(left), len(entries), c.net.count())
		}
		return err
	})
}

// restartAgent deletes a Pod by force while no agent runs. It expects the next agent to adopt the processes of the
// other Pods and to clean up after the deleted one.
func (c *cluster) restartAgent(stop func()) func() {
	c.Helper()
	pids := func() []int {
		running, err := proc.Load(c.dir)
		if err != nil {
			c.Fatal(err)
		}
		var out []int
		for _, p := range running {
			out = append(out, p.Pid)
		}
		slices.Sort(out)
		return out
	}
	before := pids()
	stop()
	gone := c.pods("web")[0]
	if _, err := c.cp.Kubectl(c.Context(), "delete", "pod", gone.Name, "--force", "--grace-period=0",
		"--wait=false"); err != nil {
		c.Fatal(err)
	}
	await.NoError(c, "Deployment replaces the Pod", func(context.Context) error {
		if pods := c.pods("web"); len(pods) != 4 || slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.UID == gone.UID
		}) {
			return fmt.Errorf("%d Pods", len(pods))
		}
		return nil
	})
	if got := pids(); !slices.Equal(got, before) {
		c.Errorf("processes changed while no agent ran: %v, before %v", got, before)
	}
	stop = c.runAgent()
	c.wantReady("web", 4)
	await.NoError(c, "the deleted Pod's traces are gone", func(context.Context) error {
		if path := filepath.Join(c.dir, string(gone.UID)); exists(path) {
			return fmt.Errorf("%s is there", path)
		}
		return nil
	})
	kept := slices.DeleteFunc(pids(), func(pid int) bool { return !slices.Contains(before, pid) })
	if len(kept) != len(before)-1 {
		c.Errorf("adopted processes %v of %v, want all but one", kept, before)
	}
	return stop
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestDeletedPodServesUntilPreStopEnds(t *testing.T) {
	c := newCluster(t)
	stop := c.runAgent()
	defer func() { stop() }()
	// The hook is longer than the test on any machine. The test ends the Pod.
	slow := strings.Replace(manifests, "    spec:\n      containers:\n",
		"    spec:\n      terminationGracePeriodSeconds: 310\n      containers:\n", 1)
	if err := c.cp.Apply(t.Context(), strings.ReplaceAll(slow, "- {name: web, image: responder,",
		"- {name: web, image: responder, lifecycle: {preStop: {sleep: {seconds: 300}}},")); err != nil {
		t.Fatal(err)
	}
	c.wantReady("web", 4)
	gone := c.pods("web")[0]
	if _, err := c.cp.Kubectl(t.Context(), "delete", "pod", gone.Name, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	draining := func(serving bool) {
		c.Helper()
		await.NoError(c, fmt.Sprintf("the Pod terminates, serving=%t", serving), func(context.Context) error {
			slices, err := c.client.DiscoveryV1().EndpointSlices("default").List(c.Context(),
				metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
			if err != nil {
				return err
			}
			for _, slice := range slices.Items {
				for _, e := range slice.Endpoints {
					if e.TargetRef.Name == gone.Name && !*e.Conditions.Ready && *e.Conditions.Serving == serving &&
						*e.Conditions.Terminating {
						return nil
					}
				}
			}
			return fmt.Errorf("no such endpoint")
		})
	}
	draining(true)
	c.ask(gone, 8080)
	if _, err := c.cp.Kubectl(t.Context(), "annotate", "pod", gone.Name, ReadyAnnotation+"=false"); err != nil {
		t.Fatal(err)
	}
	draining(false)
	c.ask(gone, 8080)
	stop()
	stop = c.runAgent()
	draining(false)
	c.ask(gone, 8080)
	if _, err := c.cp.Kubectl(t.Context(), "delete", "pod", gone.Name, "--grace-period=1"); err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(c.dir, string(gone.UID))) {
		t.Error("its traces are there")
	}
	c.wantReady("web", 4)
}
