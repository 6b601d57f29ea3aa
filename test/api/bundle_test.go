// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const bundle = "../../dist/bundle"

// serviceVersion has the fields of a ClusterServiceVersion (operators.coreos.com/v1alpha1) that the bundle uses.
type serviceVersion struct {
	metav1.TypeMeta
	Metadata metav1.ObjectMeta
	Spec     struct {
		DisplayName, Description, Version, Maturity, MinKubeVersion string
		Provider                                                    struct{ Name string }
		Keywords                                                    []string
		Links                                                       []struct{ Name, URL string }
		InstallModes                                                []struct {
			Type      string
			Supported bool
		}
		RelatedImages             []struct{ Name, Image string }
		CustomResourceDefinitions struct {
			Owned []struct{ Name, Version, Kind, DisplayName, Description string }
		}
		Install struct {
			Strategy string
			Spec     struct {
				ClusterPermissions, Permissions []permission
				Deployments                     []struct {
					Name  string
					Label map[string]string
					Spec  appsv1.DeploymentSpec
				}
			}
		}
	}
}

type permission struct {
	ServiceAccountName string
	Rules              []rbacv1.PolicyRule
}

// testBundle compares the bundle with the objects installed from the manifests.
func (s *server) testBundle(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(bundle, "manifests/ovnkube-slb.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var csv serviceVersion
	if err := yaml.UnmarshalStrict(text, &csv); err != nil {
		t.Fatal(err)
	}
	if got := csv.APIVersion + " " + csv.Kind + " " +
		csv.Metadata.Name; got != "operators.coreos.com/v1alpha1 ClusterServiceVersion ovnkube-slb.v"+csv.Spec.Version ||
		!regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(csv.Spec.Version) || csv.Spec.Install.Strategy != "deployment" {
		t.Errorf("%s of version %q, strategy %q", got, csv.Spec.Version, csv.Spec.Install.Strategy)
	}
	s.bundleRights(t, &csv)
	bundleImages(t, &csv)
	bundleKinds(t, &csv)
	bundleObjects(t, objects(t, s.kubectl(t, "kustomize", filepath.Join(manifests, "overlays/openshift"))))
}

// bundleObjects compares the objects of the overlay with those of the bundle and of what is applied beside it.
func bundleObjects(t *testing.T, want []*unstructured.Unstructured) {
	t.Helper()
	const beside = "beside.yaml"
	have := map[string]*unstructured.Unstructured{}
	for _, pattern := range []string{"manifests/*_clusterrole.yaml", "manifests/slb.*.yaml", beside} {
		files, err := filepath.Glob(filepath.Join(bundle, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects(t, string(text)) {
				have[ref(o)] = o
			}
		}
	}
	created := []string{"ServiceAccount ovnkube-slb/ovnkube-slb", "Deployment ovnkube-slb/ovnkube-slb",
		"Role ovnkube-slb/ovnkube-slb-leader", "RoleBinding ovnkube-slb/ovnkube-slb-leader",
		"ClusterRole /ovnkube-slb-controller", "ClusterRoleBinding /ovnkube-slb-controller"}
	for _, o := range want {
		if slices.Contains(created, ref(o)) {
			continue // from the ClusterServiceVersion
		}
		got := have[ref(o)]
		if got == nil {
			t.Errorf("%s: %s is missing", beside, ref(o))
			continue
		}
		if diff := cmp.Diff(o.Object, got.Object); diff != "" {
			t.Errorf("%s of the manifests -, of the bundle +:\n%s", ref(o), diff)
		}
		delete(have, ref(o))
	}
	for name := range have {
		t.Errorf("%s: %s is not in the manifests", beside, name)
	}
}

// bundleRights compares permissions with the rules of the installed roles, and creates the Deployment in a dry run.
func (s *server) bundleRights(t *testing.T, csv *serviceVersion) {
	t.Helper()
	cluster, err := s.kube.RbacV1().ClusterRoles().Get(t.Context(), "ovnkube-slb-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own, err := s.kube.RbacV1().Roles("ovn-kubernetes").Get(t.Context(), "ovnkube-slb-leader", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]permission{"clusterPermissions": {{"ovnkube-slb", cluster.Rules}},
		"permissions": {{"ovnkube-slb", own.Rules}}}
	if diff := cmp.Diff(want, map[string][]permission{"clusterPermissions": csv.Spec.Install.Spec.ClusterPermissions,
		"permissions": csv.Spec.Install.Spec.Permissions}); diff != "" {
		t.Errorf("rights of the manifests -, of the bundle +:\n%s", diff)
	}
	// With more namespaces, the permissions in this namespace would become permissions in all of them.
	for _, mode := range csv.Spec.InstallModes {
		if mode.Supported != (mode.Type == "OwnNamespace") {
			t.Errorf("install mode %s: %v", mode.Type, mode.Supported)
		}
	}
	if len(csv.Spec.Install.Spec.Deployments) != 1 {
		t.Fatalf("%d deployments", len(csv.Spec.Install.Spec.Deployments))
	}
	deployment := csv.Spec.Install.Spec.Deployments[0]
	if deployment.Spec.Template.Spec.ServiceAccountName != "ovnkube-slb" {
		t.Errorf("the Deployment runs as %q", deployment.Spec.Template.Spec.ServiceAccountName)
	}
	if annotation := deployment.Spec.Template.Annotations[requiredSCC]; annotation != "ovnkube-slb-controller" {
		t.Errorf("the Deployment requires SecurityContextConstraints %q", annotation)
	}
	_, err = s.kube.AppsV1().Deployments("ovn-kubernetes").Create(t.Context(),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "of-the-bundle", Labels: deployment.Label},
			Spec: deployment.Spec},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Errorf("the Deployment is refused: %v", err)
	}
}

func bundleImages(t *testing.T, csv *serviceVersion) {
	t.Helper()
	pinned := "ghcr.io/ovnkube-slb/ovnkube-slb:v" + csv.Spec.Version
	images := []string{csv.Metadata.Annotations["containerImage"]}
	for _, related := range csv.Spec.RelatedImages {
		images = append(images, related.Image)
	}
	for _, d := range csv.Spec.Install.Spec.Deployments {
		for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			images = append(images, c.Image)
		}
	}
	if len(images) != 3 || slices.ContainsFunc(images, func(image string) bool { return image != pinned }) {
		t.Errorf("images %v, want three times %s", images, pinned)
	}
}

// bundleKinds compares the CRDs byte by byte, and the list of owned CRDs.
func bundleKinds(t *testing.T, csv *serviceVersion) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(manifests, "crds/slb.*.yaml"))
	if err != nil || len(files) != len(csv.Spec.CustomResourceDefinitions.Owned) {
		t.Errorf("%d kinds, %d owned (%v)", len(files), len(csv.Spec.CustomResourceDefinitions.Owned), err)
	}
	for i, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(bundle, "manifests", filepath.Base(file)))
		if err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s of the bundle is not that of the manifests (%v)", filepath.Base(file), err)
		}
		owned := csv.Spec.CustomResourceDefinitions.Owned[i]
		if _, plural, _ := strings.Cut(filepath.Base(file), "_"); owned.Name != strings.TrimSuffix(plural,
			".yaml")+".slb.k8s.ovn.org" || owned.Description == "" {
			t.Errorf("owned: %+v, want %s", owned, plural)
		}
	}
}

// ref returns the kind, namespace and name of an object.
func ref(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}
