// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
)

const (
	root  = "../.."
	chart = "dist/chart"
)

// flavours returns the kustomizations of each flavour.
func flavours() map[string][]string {
	return map[string][]string{"central": {"default"}, "central-node": {"default", "node"},
		"central-bgp": {"default", "bgp"}, "interconnect": {"interconnect"}, "interconnect-bgp": {"interconnect-bgp"},
		"sdn": {"sdn"}, "openshift": {"overlays/openshift"}, "openshift-sdn": {"overlays/openshift-sdn"}}
}

func TestChartIsValid(t *testing.T) {
	if out, err := command(t, "contrib/helm.sh", "lint", "--strict", chart); err != nil {
		t.Error(out)
	}
	for set, want := range map[string]string{
		"flavour=calico": "flavour", "image.tag=latest": "tag", "controller.replicas=0": "replicas",
		"node.args[0]=verbose": "args", "nodes.args[0]=--loglevel=4": "nodes", "podMonitor.enabled=true": "bearerTokenSecret",
	} {
		if out, err := command(t, "contrib/helm.sh", "template", "x", chart, "--set", set); err == nil ||
			!strings.Contains(out, want) {
			t.Errorf("%s: %v: %s", set, err, out)
		}
	}
}

func TestChartRendersWhatKustomizeBuilds(t *testing.T) {
	for flavour, kustomizations := range flavours() {
		t.Run(flavour, func(t *testing.T) {
			want := map[string]map[string]any{}
			for _, k := range kustomizations {
				for name, o := range objects(t, must(t, "contrib/kustomize.sh", "build", filepath.Join("dist/manifests", k))) {
					want[name] = o
				}
			}
			got := objects(t, must(t, "contrib/helm.sh", "template", "x", chart, "--set", "flavour="+flavour,
				"--set", "crds.keep=false"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("of kustomize -, of the chart +:\n%s", diff)
			}
		})
	}
}

// With frrK8s.namespace, the chart has what the component has.
func TestChartHasTheRightsWithFRR(t *testing.T) {
	for _, c := range []struct{ flavour, kustomization, component, namespace string }{
		{"interconnect-bgp", "interconnect-bgp", "frr-k8s", "frr-k8s-system"},
		{"openshift", "overlays/openshift", "frr-k8s-openshift", "openshift-frr-k8s"},
	} {
		own := t.TempDir()
		manifests, err := filepath.Abs(filepath.Join(root, "dist/manifests"))
		if err == nil {
			manifests, err = filepath.Rel(own, manifests)
		}
		if err != nil {
			t.Fatal(err)
		}
		text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" +
			filepath.Join(manifests, c.kustomization) + "]\ncomponents: [" +
			filepath.Join(manifests, "components", c.component) + "]\n"
		if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := objects(t, must(t, "contrib/kustomize.sh", "build", own))
		got := objects(t, must(t, "contrib/helm.sh", "template", "x", chart, "--set", "flavour="+c.flavour,
			"--set", "crds.keep=false,frrK8s.namespace="+c.namespace))
		anyOrder := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
		if diff := cmp.Diff(want, got, anyOrder); diff != "" {
			t.Errorf("%s: of kustomize -, of the chart +:\n%s", c.flavour, diff)
		}
	}
}

func TestChartFollowsItsValues(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte(`
flavour: openshift
image: {repository: registry.example.org/slb, tag: v2.0.0}
imagePullSecrets: [{name: pull}]
loadBalancerClasses: [gateways, example.com/public]
controller: {replicas: 3, args: [--k8s-qps=50], resources: {limits: {memory: 2Gi}}}
node: {nodeSelector: {segment: lan}}
podDisruptionBudget: {enabled: true}
networkPolicy: {enabled: true, namespaces: [openshift-monitoring]}
podMonitor: {enabled: true, bearerTokenSecret: {name: prometheus}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	all := objects(t, must(t, "contrib/helm.sh", "template", "x", chart, "-f", values))
	at := func(object string, path ...string) any {
		value, _, err := unstructured.NestedFieldNoCopy(all[object], path...)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	deployment, daemons := "Deployment ovnkube-slb/ovnkube-slb", "DaemonSet ovnkube-slb/ovnkube-slb-node"
	containers, _ := at(deployment, "spec", "template", "spec", "containers").([]any)
	container, _ := containers[0].(map[string]any)
	args, _ := container["args"].([]any)
	agents, _ := at(daemons, "spec", "template", "spec", "containers").([]any)
	agent, _ := agents[0].(map[string]any)
	agentArgs, _ := agent["args"].([]any)
	classes := "--load-balancer-class=gateways,example.com/public"
	crd := "CustomResourceDefinition /l2domains.slb.k8s.ovn.org"
	for what, pair := range map[string][2]any{
		"replicas":     {at(deployment, "spec", "replicas"), float64(3)},
		"image":        {container["image"], "registry.example.org/slb:v2.0.0"},
		"argument":     {args[len(args)-1], "--k8s-qps=50"},
		"first":        {args[0], "controller"},
		"classes":      {args[len(args)-2], classes},
		"of nodes":     {agentArgs[len(agentArgs)-1], classes},
		"resources":    {container["resources"], map[string]any{"limits": map[string]any{"memory": "2Gi"}}},
		"pull secrets": {at(daemons, "spec", "template", "spec", "imagePullSecrets"), []any{map[string]any{"name": "pull"}}},
		"nodes": {at(daemons, "spec", "template", "spec", "nodeSelector"),
			map[string]any{"kubernetes.io/os": "linux", "segment": "lan"}},
		"budget":  {at("PodDisruptionBudget ovnkube-slb/ovnkube-slb", "spec", "maxUnavailable"), float64(1)},
		"policy":  {at("NetworkPolicy ovnkube-slb/ovnkube-slb-metrics", "kind"), "NetworkPolicy"},
		"monitor": {at("PodMonitor ovnkube-slb/ovnkube-slb", "kind"), "PodMonitor"},
		"CRD":     {at(crd, "metadata", "annotations", "helm.sh/resource-policy"), "keep"},
	} {
		if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
}

// TestChartHasTheVersionOfTheManifests compares the versions in files that are not generated.
func TestChartHasTheVersionOfTheManifests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(filepath.Join(root, "dist/manifests/controller/deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tag := regexp.MustCompile(`(?m)^ *image: .*:(.*)$`).FindStringSubmatch(string(text))
	if c.AppVersion != tag[1] || "v"+c.Version != c.AppVersion {
		t.Errorf("version %s and appVersion %s, want those of image tag %s", c.Version, c.AppVersion, tag[1])
	}
}

func command(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	contract.Test(t)
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must returns what a command writes to its standard output.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	contract.Test(t)
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	return string(out)
}

// objects returns the objects of a text of YAML documents, by kind, namespace and name.
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(o.Object) == 0 {
			continue
		}
		name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if out[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		out[name] = o.Object
	}
	return out
}
