// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"bytes"
	"context"
	stderrors "errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/frr"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/frrk8s/site"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
)

const (
	namespace = site.Namespace
	password  = "secret" // of the Secret "good"
)

// objects are a node, and the Secrets that the cases refer to.
const objects = `
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
---
{apiVersion: v1, kind: Secret, metadata: {namespace: ` + namespace + `, name: empty}, type: kubernetes.io/basic-auth,
  stringData: {username: "", password: ""}}
`

// node is a node on which the controller of frr-k8s runs, without FRR: it only writes FRR's configuration.
type node struct {
	configurations dynamic.ResourceInterface
	states         *kube.FRRClients
	config         string // the file with FRR's configuration
}

// Of each set of FRRConfigurations, the controller merges those, and only those, that we say it does. The webhook
// refuses the object that we name, and no other.
func TestMergeRules(t *testing.T) {
	contract.Test(t, "go", "bash")
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/cases.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n := start(t, dir, objects)
	for i, c := range archive.Files {
		t.Run(c.Name, func(t *testing.T) {
			conflict, at := merge(t, c.Data)
			if refused := strings.HasPrefix(c.Name, "refused-"); refused != (conflict != nil) {
				t.Fatalf("we say: %v", conflict)
			}
			switch {
			case strings.HasPrefix(c.Name, "refused-secret-"):
				at = -1
			case strings.HasPrefix(c.Name, "accepted-secret-"):
				at = bytes.Count(c.Data, []byte("---\n"))
			}
			n.check(t, i+1, c.Data, conflict, at)
		})
	}
}

// merge returns the verdict of the product, and the index of the object that it refuses, -1 if there is none.
func merge(t *testing.T, manifests []byte) (conflict *frrk8s.Conflict, at int) {
	t.Helper()
	merged := frrk8s.NewMerged(map[string]string{"good": password, "same": password, "empty": ""})
	i := 0
	for document := range bytes.SplitSeq(manifests, []byte("---\n")) {
		var c frr.Configuration
		if err := yaml.Unmarshal(document, &c); err != nil {
			t.Fatal(err)
		}
		if conflict := merged.Add(c.Name, &c.Spec); conflict != nil {
			return conflict, i
		}
		i++
	}
	return merged.Missing(), -1
}

// check applies the objects of a case, of which the webhook refuses the one at an index, and waits until the controller
// has merged all of them or reports why not. The last one is in a VRF of its own, and tells that all have been read.
func (n *node) check(t *testing.T, number int, manifests []byte, conflict *frrk8s.Conflict, at int) {
	t.Helper()
	marker := fmt.Sprintf("198.51.100.%d/32", number)
	documents := append(strings.Split(string(manifests), "---\n"),
		"{metadata: {name: zz-marker}, spec: {bgp: {routers: [{asn: 1, vrf: marker, prefixes: ["+marker+"]}]}}}")
	for i, document := range documents {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetGroupVersionKind(frr.GroupVersion().WithKind(frr.KindConfiguration))
		if at < 0 || i <= at {
			n.ask(t, &o, i == at)
		}
		if _, err := n.configurations.Create(t.Context(), &o, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
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
	if err := n.configurations.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "no conflict without objects", func() bool {
		text, err := os.ReadFile(n.config)
		return n.result(t) == "success" && err == nil && !bytes.Contains(text, []byte("router bgp"))
	})
}

// ask asks the webhook about an object beside those that are there.
func (n *node) ask(t *testing.T, o *unstructured.Unstructured, refused bool) {
	t.Helper()
	_, err := n.configurations.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && !strings.Contains(err.Error(), site.Webhook) {
		t.Fatal(err)
	}
	if (err != nil) != refused {
		t.Errorf("the webhook on %s: %v, want it refused: %t", o.GetName(), err, refused)
	}
}

// result returns what the controller reports of its last conversion.
func (n *node) result(t *testing.T) string {
	t.Helper()
	state, err := n.states.NodeStates.Get(t.Context(), "n1", metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return state.Status.LastConversionResult
}

// start starts a control plane with objects, the webhook, and the controller, which writes FRR's configuration to
// frr.conf in a directory. The webhook is called only for dry runs, so that the controller can get objects that it
// refuses.
func start(t *testing.T, dir, manifests string) *node {
	t.Helper()
	s, err := site.StartPlane(t.Context(), site.Config{Root: "../../..", Dir: dir, Debounce: "50", Progress: os.Stderr})
	t.Cleanup(func() {
		if err := stderrors.Join(proc.KillRecorded(dir), s.Remove(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Plane.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	if err := s.StartWebhook(t.Context(), admissionv1.MatchCondition{Name: "dry-run",
		Expression: "request.dryRun"}); err != nil {
		t.Fatal(err)
	}
	// What the container with FRR would do: it reloads FRR on SIGHUP.
	pid := filepath.Join(dir, "pid")
	_, err = proc.Start(t.Context(), proc.Spec{Name: "reloader", Dir: dir,
		Args: []string{"env", "--default-signal=HUP", "bash", "-c",
			`trap : HUP; printf $$ >"$0.new"; mv "$0.new" "$0"; while :; do read -rt 3600 <> <(:); done`, pid},
		Ready: func(context.Context) error {
			_, err := os.Stat(pid)
			return err
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Controller(t.Context(), "n1", dir, pid); err != nil {
		t.Fatal(err)
	}
	config := s.Plane.RESTConfig()
	config.QPS = -1
	states, err := kube.NewFRRClients(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &node{states: states, config: filepath.Join(dir, "frr.conf"),
		configurations: client.Resource(frr.GroupVersion().WithResource(frr.Configurations)).Namespace(namespace)}
}
