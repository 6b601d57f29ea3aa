// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
)

const (
	module    = "github.com/metallb/frr-k8s@v0.0.25"
	namespace = "frr-k8s-system"
	password  = "secret" // of the Secret "good"
)

// objects are a node, and the Secrets that the cases refer to.
const objects = `
{apiVersion: v1, kind: Namespace, metadata: {name: ` + namespace + `}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: ` + namespace + `, name: good}, type: kubernetes.io/basic-auth,
  stringData: {username: "", password: ` + password + `}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: ` + namespace + `, name: same}, type: kubernetes.io/basic-auth,
  stringData: {username: "", password: ` + password + `}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: ` + namespace + `, name: opaque}, type: Opaque,
  stringData: {password: ` + password + `}}
`

// node is a node on which the controller of frr-k8s runs, without FRR: it only writes FRR's configuration.
type node struct {
	plane  *controlplane.ControlPlane
	config string // the file with FRR's configuration
}

// Of each set of FRRConfigurations, the controller merges those, and only those, that we say it does.
func TestMergeRules(t *testing.T) {
	contract.Test(t, "go", "bash")
	archive, err := txtar.ParseFile("testdata/cases.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// What the container with FRR would do: it reloads FRR on SIGHUP.
	pid := filepath.Join(dir, "pid")
	background(t, nil, "bash", "-c", `trap : HUP; printf $$ >"$0"; while :; do read -rt 3600 <> <(:); done`, pid)
	await.True(t, "the reloader started", func() bool {
		text, err := os.ReadFile(pid)
		return err == nil && len(text) > 0
	})
	n := start(t, dir, objects)
	for i, c := range archive.Files {
		t.Run(c.Name, func(t *testing.T) {
			conflict := merge(t, c.Data)
			if refused := strings.HasPrefix(c.Name, "refused-"); refused != (conflict != nil) {
				t.Fatalf("we say: %v", conflict)
			}
			n.check(t, i+1, c.Data, conflict)
		})
	}
}

// merge returns the verdict of the product.
func merge(t *testing.T, manifests []byte) *frrk8s.Conflict {
	t.Helper()
	merged := frrk8s.NewMerged(map[string]string{"good": password, "same": password})
	for document := range bytes.SplitSeq(manifests, []byte("---\n")) {
		var c frr.Configuration
		if err := yaml.Unmarshal(document, &c); err != nil {
			t.Fatal(err)
		}
		if conflict := merged.Add(c.Name, &c.Spec); conflict != nil {
			return conflict
		}
	}
	return nil
}

// check applies the objects of a case, and waits until the controller has merged all of them or reports why not. The
// last one is in a VRF of its own, and tells that all have been read.
func (n *node) check(t *testing.T, number int, manifests []byte, conflict *frrk8s.Conflict) {
	t.Helper()
	marker := fmt.Sprintf("198.51.100.%d/32", number)
	documents := []string{}
	for document := range strings.SplitSeq(string(manifests), "---\n") {
		documents = append(documents, "apiVersion: frrk8s.metallb.io/v1beta1\nkind: FRRConfiguration\n"+
			strings.Replace(document, "metadata: {", "metadata: {namespace: "+namespace+", ", 1))
	}
	documents = append(documents, "{apiVersion: frrk8s.metallb.io/v1beta1, kind: FRRConfiguration, metadata: {namespace: "+
		namespace+", name: zz-marker}, spec: {bgp: {routers: [{asn: 1, vrf: marker, prefixes: ["+marker+"]}]}}}")
	for _, document := range documents {
		if err := n.plane.Apply(t.Context(), document); err != nil {
			t.Fatal(err)
		}
	}
	merged := func() bool {
		text, err := os.ReadFile(n.config)
		return err == nil && bytes.Contains(text, []byte(marker))
	}
	if conflict == nil {
		await.True(t, "the objects merged", merged)
	} else {
		await.True(t, fmt.Sprintf("a conflict as we say: %s", conflict), func() bool {
			return strings.HasPrefix(n.result(t), "failed")
		})
		if merged() {
			t.Error("the controller merges the objects")
		}
		t.Logf("we say: %s; the controller: %s", conflict, n.result(t))
	}
	if _, err := n.plane.Kubectl(t.Context(), "-n", namespace, "delete", "frrconfigurations", "--all"); err != nil {
		t.Fatal(err)
	}
	await.True(t, "no conflict without objects", func() bool {
		text, err := os.ReadFile(n.config)
		return n.result(t) == "success" && err == nil && !bytes.Contains(text, []byte("router bgp"))
	})
}

// result returns what the controller reports of its last conversion.
func (n *node) result(t *testing.T) string {
	t.Helper()
	out, err := n.plane.Kubectl(t.Context(), "get", "frrnodestate", "n1", "--ignore-not-found",
		"-o", "jsonpath={.status.lastConversionResult}")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// start starts a control plane with objects and the controller. It writes FRR's configuration to frr.conf in a
// directory, and then sends SIGHUP to the process in the file pid.
func start(t *testing.T, dir, manifests string) *node {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Config{Dir: t.TempDir(), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	var source struct{ Dir string }
	if err := json.Unmarshal(out, &source); err != nil {
		t.Fatal(err)
	}
	crds := filepath.Join(source.Dir, "config/crd/bases")
	for _, args := range [][]string{{"apply", "-f", crds},
		{"wait", "--for=condition=Established", "--timeout=1m", "-f", crds}} {
		if _, err := plane.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := plane.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	n := &node{plane: plane, config: filepath.Join(dir, "frr.conf")}
	background(t, []string{"KUBECONFIG=" + plane.AdminKubeconfig(), "FRR_CONFIG_FILE=" + n.config,
		"FRR_RELOADER_PID_FILE=" + filepath.Join(dir, "pid"), "FRR_K8S_BGP_DEBOUNCE_TIMEOUT=50"},
		"../../../contrib/frr-k8s.sh", "--node-name=n1", "--namespace="+namespace, "--metrics-bind-address=0",
		"--health-probe-bind-address=0")
	return n
}

// background runs a program until the test ends.
func background(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...) //nolint:noctx // Ended below, and waited for.
	cmd.Env = append(os.Environ(), env...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		text, _ := os.ReadFile(log.Name())
		log.Close()
		if t.Failed() {
			t.Logf("%s: %s", name, text[max(0, len(text)-3000):])
		}
	})
}
