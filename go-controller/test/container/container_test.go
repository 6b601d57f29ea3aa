// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

// capabilities are the numbers of those that manifests name.
func capabilities() map[corev1.Capability]int {
	return map[corev1.Capability]int{"DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "NET_ADMIN": unix.CAP_NET_ADMIN,
		"NET_RAW": unix.CAP_NET_RAW}
}

func TestContainersOfTheManifests(t *testing.T) {
	contract.TestAsRoot(t)
	s := build(t)
	for _, dir := range []string{"base", "default", "node", "agents", "bgp", "interconnect-bgp", "sdn"} {
		s.testPods(t, dir)
	}
	// On OpenShift, there is a Network, and the namespace of OVN-Kubernetes is another one.
	s.kubectl(t, "wait", "--for=condition=Established", "crd/networks.config.openshift.io")
	network := filepath.Join(t.TempDir(), "network.yaml")
	if err := os.WriteFile(network, []byte("apiVersion: config.openshift.io/v1\nkind: Network\n"+
		"metadata: {name: cluster}\nspec: {}\nstatus: {networkType: OVNKubernetes, "+
		"clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}], "+
		"serviceNetwork: [172.30.0.0/16]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "apply", "-f", network)
	s.kubectl(t, "delete", "namespace", "ovn-kubernetes", "--wait=false")
	for _, dir := range []string{"overlays/openshift", "overlays/openshift-sdn"} {
		s.testPods(t, dir)
	}
}

// testPods applies a kustomization and runs each of its containers.
func (s *site) testPods(t *testing.T, dir string) {
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, dir))
	for document := range strings.SplitSeq("\n"+s.kubectl(t, "kustomize", filepath.Join(manifests, dir)), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() != "Deployment" && o.GetKind() != "DaemonSet" {
			continue
		}
		raw, _, err := unstructured.NestedMap(o.Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, pod); err != nil {
			t.Fatal(err)
		}
		pod.Name, pod.Namespace, pod.Spec.NodeName = o.GetName(), o.GetNamespace(), nodeName
		t.Run(dir+"/"+pod.Name, func(t *testing.T) { s.testPod(t, pod) })
	}
}

// testPod runs a Pod and checks its privileges, its probes and what the privileges are for.
func (s *site) testPod(t *testing.T, pod *corev1.Pod) {
	c := &pod.Spec.Containers[0]
	s.authorized(t, pod)
	p := s.start(t, pod, c)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(p.Log()) // the log only helps to explain the failure
			t.Logf("%s", log)
		}
		_ = p.Kill() // It may have ended.
	})
	for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe} {
		get := probe.HTTPGet
		await.NoError(t, get.Path, func(ctx context.Context) error {
			if !p.Alive() {
				t.Fatalf("%s has ended", pod.Name)
			}
			return answers(ctx, "http://"+net.JoinHostPort(get.Host, get.Port.String())+get.Path, http.StatusOK)
		})
	}
	for _, port := range c.Ports {
		if port.Name == "metrics" {
			await.NoError(t, port.Name, func(ctx context.Context) error {
				return answers(ctx, fmt.Sprintf("https://127.0.0.1:%d/metrics", port.ContainerPort), http.StatusUnauthorized)
			})
		}
	}
	var mask uint64
	for _, name := range c.SecurityContext.Capabilities.Add {
		mask |= 1 << capabilities()[name]
	}
	uid := strconv.FormatInt(*c.SecurityContext.RunAsUser, 10)
	for field, want := range map[string]string{"CapEff": fmt.Sprintf("%016x", mask), "CapBnd": fmt.Sprintf("%016x", mask),
		"NoNewPrivs": "1", "Uid": strings.Join([]string{uid, uid, uid, uid}, "\t")} {
		if got := status(t, p.Pid, field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if pod.Name == "ovnkube-slb-sdn" {
		s.testAddress(t)
	}
	if strings.Contains(strings.Join(c.Args, " "), "--enable-bgp") {
		s.testSession(t)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(await.Context(t)); err != nil {
		t.Errorf("%s does not end: %v", pod.Name, err)
	}
	log, err := os.ReadFile(p.Log())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		for _, bad := range []string{"ermission denied", "not permitted", "ead-only file system", "forbidden"} {
			if strings.Contains(line, bad) {
				t.Errorf("%s logs %s", pod.Name, line)
			}
		}
	}
}

// start runs a container of a Pod.
func (s *site) start(t *testing.T, pod *corev1.Pod, c *corev1.Container) *proc.Process {
	t.Helper()
	sc := c.SecurityContext
	host, port := s.api()
	values := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
	for _, e := range c.Env {
		values[e.Name] = s.value(t, pod, e)
	}
	run := spec{Root: s.image.root, UID: int(*sc.RunAsUser), ReadOnlyRoot: *sc.ReadOnlyRootFilesystem,
		NoNewPrivs: !*sc.AllowPrivilegeEscalation, Args: []string{s.image.entrypoint},
		Mounts: []mount{{s.account(t, pod), "/var/run/secrets/kubernetes.io/serviceaccount", true}}}
	for name, value := range values {
		run.Env = append(run.Env, name+"="+value)
	}
	for _, arg := range c.Args {
		for name, value := range values {
			arg = strings.ReplaceAll(arg, "$("+name+")", value)
		}
		run.Args = append(run.Args, arg)
	}
	for _, m := range c.VolumeMounts {
		run.Mounts = append(run.Mounts, mount{s.host(volume(t, pod, m.Name).HostPath.Path), m.MountPath, m.ReadOnly})
	}
	for _, name := range sc.Capabilities.Add {
		run.Capabilities = append(run.Capabilities, capabilities()[name])
	}
	if pod.Name != "ovnkube-slb" { // All daemons on nodes send and receive raw frames.
		run.PacketDevice = device
	}
	text, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "spec.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	p, err := proc.Start(t.Context(), proc.Spec{Name: name, Dir: s.dir, Env: []string{role + "=" + file},
		Args: []string{self}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// value returns the value of an environment variable, as the kubelet does.
func (s *site) value(t *testing.T, pod *corev1.Pod, e corev1.EnvVar) string {
	t.Helper()
	if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
		config, err := s.kube.CoreV1().ConfigMaps(pod.Namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
		if err != nil || config.Data[ref.Key] == "" {
			t.Fatalf("%s: key %s of ConfigMap %s: %v", e.Name, ref.Key, ref.Name, err)
		}
		return config.Data[ref.Key]
	}
	value, known := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace,
		"spec.nodeName": pod.Spec.NodeName}[e.ValueFrom.FieldRef.FieldPath]
	if !known {
		t.Fatalf("%s is from %s", e.Name, e.ValueFrom.FieldRef.FieldPath)
	}
	return value
}

func volume(t *testing.T, pod *corev1.Pod, name string) *corev1.Volume {
	t.Helper()
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == name && v.HostPath != nil {
			return v
		}
	}
	t.Fatalf("no hostPath volume %s", name)
	return nil
}

// testAddress has the agent add an address to the node, which needs NET_ADMIN, and announce it, which needs NET_RAW.
func (s *site) testAddress(t *testing.T) {
	t.Helper()
	vips := `slb.k8s.ovn.org/vips=[{"ip":"192.0.2.9","service":"shop/web","generation":1,"shard":"lan/0","interface":"` +
		device + `"}]`
	s.kubectl(t, "annotate", "node", nodeName, vips)
	s.kubectlAfter(t, "annotate", "node", nodeName, "slb.k8s.ovn.org/vips-")
	await.NoError(t, "the address", func(context.Context) error {
		link, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		addrs, err := link.Addrs()
		for _, a := range addrs {
			if a.String() == "192.0.2.9/32" {
				return nil
			}
		}
		return fmt.Errorf("%s has %v (%w)", device, addrs, err)
	})
}

// testSession has the node connect to a router with a password and TTL security, and send BFD packets.
func (s *site) testSession(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "peer.yaml")
	if err := os.WriteFile(file, []byte(peer), 0o600); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "apply", "-f", file)
	s.kubectlAfter(t, "delete", "-f", file)
	await.NoError(t, "the session", func(context.Context) error {
		text := s.kubectl(t, "get", "bgpnodestatus", "--ignore-not-found", nodeName, "-o", "jsonpath={.status.sessions[*]}")
		if !strings.Contains(text, "lastError") {
			return fmt.Errorf("sessions: %s", text)
		}
		if strings.Contains(text, "permitted") || strings.Contains(text, "denied") {
			t.Fatalf("sessions: %s", text)
		}
		return nil
	})
}

const peer = `
apiVersion: v1
kind: Secret
metadata: {name: tor, namespace: ovnkube-slb-bgp}
type: kubernetes.io/basic-auth
stringData: {password: secret}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BFDProfile
metadata: {name: fast}
spec: {}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {myASN: 64512, peerASN: 64513, peerAddress: 192.0.2.2, passwordSecret: {name: tor}, bfdProfile: fast}
`

func status(t *testing.T, pid int, field string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s in the status of process %d", field, pid)
	return ""
}

// answers returns an error unless the URL is answered with a status.
func answers(ctx context.Context, url string, want int) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode != want {
		return fmt.Errorf("%s: %s: %s (%w)", url, response.Status, text, err)
	}
	return nil
}
