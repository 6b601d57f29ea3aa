// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/contract"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
)

const (
	manifests = "../../dist/manifests"
	examples  = "../../docs/examples"
)

// server is a control plane with all of dist/manifests/default applied.
type server struct {
	*controlplane.ControlPlane
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

// TestManifests installs the manifests once. Its parts remove what others must not find, but the last two install other
// manifests over these.
func TestManifests(t *testing.T) {
	s := start(t)
	t.Run("bad pools are refused", s.testBadPools)
	t.Run("bad objects are refused", s.testBadObjects)
	t.Run("good objects are accepted", s.testGoodObjects)
	t.Run("defaults", s.testDefaults)
	t.Run("CEL and Go agree on random pools", s.testAgreement)
	t.Run("the largest pool is within the cost limits", s.testLargestPool)
	t.Run("pools do not overlap each other", s.testOverlap)
	t.Run("a node writes of itself only", s.testOwnNode)
	t.Run("a pool with externalIPs is accepted with a warning", s.testWarning)
	t.Run("examples", s.testExamples)
	t.Run("rights", s.testRights)
	t.Run("bundle", s.testBundle)
	t.Run("node", s.testNode)
	t.Run("node with BGP", s.testBGPNode)
	t.Run("OpenShift SDN", s.testSDN)
	t.Run("inside ovnkube-master", s.testInsideOVNKubeMaster)
	t.Run("kustomizations", s.testKustomizations)
	t.Run("listeners", s.testListeners)
	t.Run("OpenShift", s.testOpenShift)
	t.Run("flow control", s.testFlowControl)
}

// start returns a control plane with everything installed.
func start(t *testing.T) *server {
	t.Helper()
	contract.Test(t)
	plane, err := controlplane.Start(t.Context(), controlplane.Config{Dir: t.TempDir(), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s := &server{ControlPlane: plane}
	config := plane.RESTConfig()
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	s.install(t)
	t.Run("a pool right after the installation", s.testFirstPool)
	return s
}

// install follows the README. It installs into the namespace of OVN-Kubernetes.
func (s *server) install(t *testing.T) {
	t.Helper()
	s.kubectl(t, "create", "namespace", "ovn-kubernetes")
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, "default"))
}

func (s *server) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// deleteAfter runs kubectl delete with the arguments when the test ends.
func (s *server) deleteAfter(t *testing.T, args ...string) {
	t.Cleanup(func() {
		if _, err := s.Kubectl(context.WithoutCancel(t.Context()), append([]string{"delete"}, args...)...); err != nil {
			t.Error(err)
		}
	})
}

// apply stores objects, and returns when the API server has.
func (s *server) apply(t *testing.T, manifest string) {
	t.Helper()
	if err := s.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

// get returns a field of an object, in the namespace of OVN-Kubernetes if its kind has namespaces.
func (s *server) get(t *testing.T, resource, name, path string) string {
	t.Helper()
	out, err := s.Get(t.Context(), resource, "ovn-kubernetes", name, path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// file writes a manifest for kubectl to a file. It returns the path.
func (s *server) file(t *testing.T, manifest string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := writeFile(path, manifest); err != nil {
		t.Fatal(err)
	}
	return path
}

// create checks whether the API server would store the object, including all validation and admission. Nothing is
// stored.
func (s *server) create(ctx context.Context, manifest string) error {
	_, err := s.created(ctx, manifest)
	return err
}

func (s *server) created(ctx context.Context, manifest string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return nil, err
	}
	resource, ok := resources()[object.GetKind()]
	if !ok {
		return nil, errors.New("unknown kind " + object.GetKind())
	}
	return s.dynamic.Resource(resource).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
	})
}

func resources() map[string]schema.GroupVersionResource {
	all := map[string]schema.GroupVersionResource{}
	for kind, resource := range map[string]string{
		"IPAddressPool": "ipaddresspools", "L2Domain": "l2domains", "BGPPeer": "bgppeers",
		"BGPAdvertisement": "bgpadvertisements",
		"BFDProfile":       "bfdprofiles", "Community": "communities", "BGPNodeStatus": "bgpnodestatuses",
	} {
		all[kind] = v1alpha1.GroupVersion().WithResource(resource)
	}
	return all
}

// object returns a manifest of one of our kinds.
func object(kind, name, spec string) string {
	return "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n" +
		indent(spec)
}

// pool returns the manifest of a pool. addresses is a YAML list.
func pool(name, addresses string) string {
	return object("IPAddressPool", name, "addresses: "+addresses)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// refused checks that err is not nil and that its message contains every part.
func refused(t *testing.T, err error, parts []string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message lacks %q:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "evaluating rule") || strings.Contains(err.Error(), "exceeded budget") {
		t.Errorf("a rule failed itself:\n%v", err)
	}
}
