// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

func startIn(t *testing.T, dir string) *ControlPlane {
	t.Helper()
	began := time.Now()
	c, err := Start(t.Context(), Config{Dir: dir, Bin: binaries(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s at %s", time.Since(began).Round(time.Millisecond), c.server)
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if left := processesOf(t, dir); len(left) > 0 {
			t.Errorf("processes left: %q", left)
		}
	})
	return c
}

// processesOf returns the command lines of processes that contain the directory, whether they are recorded or not.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		cwd, _ := os.Readlink(filepath.Join(filepath.Dir(path), "cwd"))
		if err == nil && len(text) > 0 && (bytes.Contains(text, []byte(dir)) || cwd == dir) {
			left = append(left, string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
	}
	return left
}

func kubectl(t *testing.T, c *ControlPlane, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// Two control planes start at the same time, and the behaviours of one are shown on these.
func TestControlPlanes(t *testing.T) {
	bin := binaries(t)
	dirs, planes := []string{t.TempDir(), t.TempDir()}, make([]*ControlPlane, 2)
	var group errgroup.Group
	for i, dir := range dirs {
		group.Go(func() (err error) {
			planes[i], err = Start(t.Context(), Config{Dir: dir, Bin: bin})
			return err
		})
		t.Cleanup(func() {
			if err := proc.KillRecorded(dir); err != nil { // As after a crash, only the directory is known.
				t.Error(err)
			}
			if left := processesOf(t, dir); len(left) > 0 {
				t.Errorf("processes left: %q", left)
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Run("do not collide", func(t *testing.T) { doNotCollide(t, planes[0], planes[1]) })
	t.Run("dual-stack Services, after Attach", func(t *testing.T) { dualStackServices(t, dirs[0]) })
	t.Run("rights of a ServiceAccount", func(t *testing.T) { serviceAccountHasOnlyGrantedRights(t, planes[0]) })
	t.Run("restart", func(t *testing.T) { restartKeepsObjectsAndIdentities(t, planes[1]) })
}

func doNotCollide(t *testing.T, one, other *ControlPlane) {
	kubectl(t, one, "create", "namespace", "only-here")
	if _, err := other.Kubectl(t.Context(), "get", "namespace", "only-here"); err == nil {
		t.Error("the second control plane has the first one's object")
	}
	if one.server == other.server {
		t.Errorf("both serve at %s", one.server)
	}
}

func dualStackServices(t *testing.T, dir string) {
	c, err := Attach(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ipFamilyPolicy: RequireDualStack, ports: [{port: 80}]}}`); err != nil {
		t.Fatal(err)
	}
	const path = "{.spec.clusterIPs[0]} {.spec.clusterIPs[1]}"
	text := kubectl(t, c, "get", "service", "web", "-o", "jsonpath="+path)
	ips := strings.Fields(text)
	if len(ips) != 2 || !strings.HasPrefix(ips[0], "10.96.") || !strings.HasPrefix(ips[1], "fd00:10:96::") {
		t.Errorf("cluster IPs = %q", ips)
	}
	if got, err := c.Get(t.Context(), "services", "default", "web", path); got != text {
		t.Errorf("Get returns %q (%v), kubectl get %q", got, err, text)
	}
	for want, manifests := range map[string]string{
		"Wrong":        "{apiVersion: v1, kind: Service, metadata: {name: Wrong}}",
		"spec.unknown": "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {unknown: true}}",
	} {
		if err := c.Apply(t.Context(), manifests); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a bad manifest: %v, want %s in it", err, want)
		}
	}
}

func serviceAccountHasOnlyGrantedRights(t *testing.T, c *ControlPlane) {
	path, err := c.ServiceAccountKubeconfig("ovn-kubernetes", "ovnkube-slb")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context) error {
		_, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list(t.Context()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		"system:serviceaccount:ovn-kubernetes:ovnkube-slb") {
		t.Fatalf("list without a grant: %v", err)
	}
	kubectl(t, c, "create", "clusterrolebinding", "slb", "--clusterrole=view",
		"--serviceaccount=ovn-kubernetes:ovnkube-slb")
	await.NoError(t, "the authorizer has observed the binding", list)
	if _, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list of what was not granted: %v", err)
	}
}

func restartKeepsObjectsAndIdentities(t *testing.T, c *ControlPlane) {
	dir := c.Dir()
	kubectl(t, c, "create", "configmap", "kept")
	before, err := os.ReadFile(certPath(dir, authorityName))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped after %s", time.Since(began).Round(time.Millisecond))
	if _, err := Attach(dir); err == nil {
		t.Error("attached to a control plane that is stopped")
	}
	c = startIn(t, dir)
	if got := kubectl(t, c, "get", "configmap", "kept", "-o", "name"); got != "configmap/kept" {
		t.Errorf("got %q", got)
	}
	if after, err := os.ReadFile(certPath(dir, authorityName)); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the certificate authority changed: %v", err)
	}
}

func TestInvalidConfigNamesFieldAndValue(t *testing.T) {
	for want, config := range map[string]Config{
		`Dir ""`:     {},
		"192.0.2.77": {Dir: t.TempDir(), Address: netip.MustParseAddr("192.0.2.77")},
	} {
		if _, err := Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %s in it", err, want)
		}
	}
}
