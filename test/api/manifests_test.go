// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// openShift has the relevant parts of kinds of OpenShift. The fields of its SecurityContextConstraints are checked by
// [constraints].
const openShift = "../controller/testdata/openshift-kinds.yaml"

// kustomizations returns the directories below dist/manifests that can be applied.
func kustomizations(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(manifests, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "\nkind: Kustomization\n") {
			out = append(out, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objects returns the objects of a text of YAML documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// podsOf returns a Pod for each Deployment and DaemonSet among the objects.
func podsOf(t *testing.T, all []*unstructured.Unstructured) []*corev1.Pod {
	t.Helper()
	var out []*corev1.Pod
	for _, o := range all {
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
		pod.Name, pod.Namespace = o.GetName(), o.GetNamespace()
		out = append(out, pod)
	}
	return out
}

// testKustomizations applies every kustomization in a dry run, with strict validation, and lets the API server admit
// the Pods. Every image has the version of the bundle.
func (s *server) testKustomizations(t *testing.T) {
	s.kubectl(t, "apply", "-f", openShift)
	await.NoError(t, "OpenShift's kinds are served", s.ServesKinds)
	csv, err := os.ReadFile(filepath.Join(bundle, "manifests/ovnkube-slb.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^  version: (.+)$`).FindStringSubmatch(string(csv))
	image := "ghcr.io/ovnkube-slb/ovnkube-slb:v" + version[1]
	sent := map[string]bool{} // the kustomizations share most of their objects
	for _, dir := range kustomizations(t) {
		name, err := filepath.Rel(manifests, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			text := s.kubectl(t, "kustomize", dir)
			all := objects(t, text)
			s.createNamespaces(t, all)
			if err := s.DryRun(t.Context(), unsent(text, sent)); err != nil {
				t.Error(err)
			}
			for _, pod := range podsOf(t, all) {
				checkContainers(t, pod, image)
				if _, err := s.createPod(t, pod); err != nil {
					t.Errorf("Pod %s/%s: %v", pod.Namespace, pod.Name, err)
				}
				for _, namespace := range []string{guards, passwords} {
					pod.Namespace = namespace
					if _, err := s.createPod(t, pod); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
						t.Errorf("Pod %s/%s: %v, want a violation of Pod Security", pod.Namespace, pod.Name, err)
					}
				}
			}
		})
	}
}

// unsent returns the YAML documents of a text that are not in sent, and adds them to it.
func unsent(text string, sent map[string]bool) string {
	documents := slices.DeleteFunc(strings.Split(text, "\n---\n"), func(d string) bool { return sent[d] })
	for _, d := range documents {
		sent[d] = true
	}
	return strings.Join(documents, "\n---\n")
}

// checkContainers checks the images of a Pod, and that its memory is bounded.
func checkContainers(t *testing.T, pod *corev1.Pod, image string) {
	t.Helper()
	for _, c := range pod.Spec.Containers {
		if c.Image != image {
			t.Errorf("%s: container %s has image %q, want %q", pod.Name, c.Name, c.Image, image)
		}
		if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: container %s has no request or no limit of memory", pod.Name, c.Name)
		}
	}
}

// createNamespaces creates the namespaces among the objects that are not there yet, with their labels.
func (s *server) createNamespaces(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range all {
		if o.GetKind() != "Namespace" {
			continue
		}
		text, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		s.apply(t, string(text))
	}
}

// createPod creates a Pod in a dry run and returns it with its defaults.
func (s *server) createPod(t *testing.T, pod *corev1.Pod) (*corev1.Pod, error) {
	t.Helper()
	return s.kube.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
}

// testListeners checks that no two processes that may run on one node listen at one port.
func (s *server) testListeners(t *testing.T) {
	seen := map[string]string{}
	for _, dir := range []string{"interconnect-bgp", "sdn"} {
		for _, pod := range podsOf(t, objects(t, s.kubectl(t, "kustomize", filepath.Join(manifests, dir)))) {
			for _, arg := range pod.Spec.Containers[0].Args {
				flag, address, _ := strings.Cut(arg, "=")
				if !strings.HasSuffix(flag, "bind-address") {
					continue
				}
				port := address[strings.LastIndex(address, ":"):]
				if other, found := seen[port]; found && other != pod.Name {
					t.Errorf("%s and %s listen at port %s", other, pod.Name, port)
				}
				seen[port] = pod.Name
			}
		}
	}
	if want := []string{":9480", ":9481", ":9482", ":9483", ":9484", ":9485", ":9486"}; len(seen) != len(want) {
		t.Errorf("ports %v, want %v", seen, want)
	}
}
