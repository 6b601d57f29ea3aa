// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const webManifest = `
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
      - name: web
        image: responder
        ports: [{containerPort: 8080}, {containerPort: 8080, protocol: UDP}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

func TestClusterRunsDeployments(t *testing.T) {
	l := upLab(t, Config{Name: labName("kube"), Nodes: 2})
	client, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	before, err := l.Namespaces()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("nodes are as OVN-Kubernetes leaves them", func(t *testing.T) { requireNodes(t, l, client) })
	if _, err := l.Kubectl(t.Context(), webManifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range awaitEndpoints(t, client, "web", 8) { // Four pods in two families.
		out, err := l.Exec(t.Context(), PodNetns("default", endpoint.pod), "ip", "-o", "addr", "show", "to",
			endpoint.addr.String())
		if err != nil || out == "" {
			t.Errorf("pod %s has no address %s: %q, %v", endpoint.pod, endpoint.addr, out, err)
		}
		ping(t, l, "n1", endpoint.addr)
	}
	t.Run("an agent that died changes nothing", func(t *testing.T) { restartAgent(t, l, client) })
	t.Run("drain", func(t *testing.T) { drain(t, l, client) })
	if _, err := l.Kubectl(t.Context(), "", "delete", "deployment", "web"); err != nil {
		t.Fatal(err)
	}
	awaitEndpoints(t, client, "web", 0)
	await.NoError(t, "no namespace of a pod is left", func(context.Context) error {
		names, err := l.Namespaces()
		if err == nil && len(names) != len(before) {
			err = fmt.Errorf("namespaces %v: want none of pods", names)
		}
		return err
	})
}

func requireNodes(t *testing.T, l *Lab, client kubernetes.Interface) {
	for _, n := range l.Nodes {
		object, err := client.CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{
			"k8s.ovn.org/node-chassis-id": n.Chassis,
			"k8s.ovn.org/node-subnets": fmt.Sprintf(`{"default":["10.244.%d.0/24","fd00:10:244:%d::/64"]}`, n.Index,
				n.Index),
			"k8s.ovn.org/host-cidrs":          fmt.Sprintf(`["%s","%s"]`, n.LAN[0], n.LAN[1]),
			"k8s.ovn.org/node-primary-ifaddr": fmt.Sprintf(`{"ipv4":"%s","ipv6":"%s"}`, n.LAN[0], n.LAN[1]),
		} {
			if got := object.Annotations[key]; got != want {
				t.Errorf("node %s: annotation %s = %q, want %q", n.Name, key, got, want)
			}
		}
	}
}

type endpoint struct {
	pod  string
	addr netip.Addr
}

// awaitEndpoints returns the ready endpoints of a Service once their number is want.
func awaitEndpoints(t *testing.T, client kubernetes.Interface, service string, want int) []endpoint {
	t.Helper()
	var ready []endpoint
	await.NoError(t, fmt.Sprintf("%s has %d endpoints", service, want), func(ctx context.Context) error {
		slices, err := client.DiscoveryV1().EndpointSlices("default").List(ctx,
			metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		ready = nil
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready = append(ready, endpoint{pod: e.TargetRef.Name, addr: netip.MustParseAddr(e.Addresses[0])})
				}
			}
		}
		if len(ready) != want {
			return fmt.Errorf("endpoints of %s: %v: want %d", service, ready, want)
		}
		return nil
	})
	return ready
}

// restartAgent checks that pods keep their addresses across a restart of the agent, and that a new pod gets a different
// one.
func restartAgent(t *testing.T, l *Lab, client kubernetes.Interface) {
	before := awaitEndpoints(t, client, "web", 8)
	agent, err := proc.Find(l.Dir, agentName)
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Kubectl(t.Context(), "", "scale", "deployment", "web", "--replicas=5"); err != nil {
		t.Fatal(err)
	}
	if err := l.startAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := map[endpoint]bool{}
	for _, e := range awaitEndpoints(t, client, "web", 10) {
		after[e] = true
	}
	for _, e := range before {
		if !after[e] {
			t.Errorf("endpoint %v is gone", e)
		}
	}
	if len(after) != 10 {
		t.Errorf("endpoints %v: want ten different", after)
	}
}

func drain(t *testing.T, l *Lab, client kubernetes.Interface) {
	labelled := func() bool {
		object, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, found := object.Labels[corev1.LabelNodeExcludeBalancers]
		return found
	}
	if err := l.Drain(t.Context(), "n1"); err != nil || !labelled() {
		t.Errorf("drain: %v, labelled %t", err, labelled())
	}
	if err := l.Undrain(t.Context(), "n1"); err != nil || labelled() {
		t.Errorf("undrain: %v, labelled %t", err, labelled())
	}
}
