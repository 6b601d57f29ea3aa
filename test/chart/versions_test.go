// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	basecompatibility "k8s.io/component-base/compatibility"
)

// TestFlavoursInstallOnTheOldestKubernetes renders each flavour for the oldest Kubernetes that docs/support.md
// promises. The API server of that version has all kinds, and accepts the CRDs. On older ones, helm refuses.
func TestFlavoursInstallOnTheOldestKubernetes(t *testing.T) {
	oldest, oldestSDN := promised(t)
	for flavour := range flavours() {
		t.Run(flavour, func(t *testing.T) {
			kubernetes := oldest
			if strings.HasSuffix(flavour, "sdn") {
				kubernetes = oldestSDN
			}
			template := func(v *version.Version) []string {
				return []string{"template", "x", chart, "--set", "flavour=" + flavour, "--kube-version", v.String()}
			}
			all := objects(t, must(t, "contrib/helm.sh", template(kubernetes)...))
			crds := 0
			for name, o := range all {
				kind := gvk(o)
				checkServed(t, name, kind, kubernetes)
				if kind.Kind == "CustomResourceDefinition" {
					crds++
					checkCRD(t, o, kubernetes)
				}
			}
			if crds != 8 {
				t.Errorf("%d CRDs, want 8", crds)
			}
			before := kubernetes.SubtractMinor(1)
			if out, err := command(t, "contrib/helm.sh", template(before)...); err == nil ||
				!strings.Contains(out, before.String()) {
				t.Errorf("with Kubernetes %s: %v, %.200s; want an error with the version", before, err, out)
			}
		})
	}
}

// TestBundleNeedsTheOldestKubernetes: the bundle is for OVN-Kubernetes.
func TestBundleNeedsTheOldestKubernetes(t *testing.T) {
	oldest, _ := promised(t)
	text, err := os.ReadFile(filepath.Join(root, "dist/bundle/manifests/ovnkube-slb.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\n  minKubeVersion: " + oldest.String() + ".0\n"; !strings.Contains(string(text), want) {
		t.Errorf("the bundle lacks %q", want)
	}
}

// promised returns the oldest supported versions of Kubernetes: with OVN-Kubernetes and with OpenShift SDN.
func promised(t *testing.T) (ovn, sdn *version.Version) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/support.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| Kubernetes \| (1\.\d+) or newer; with OpenShift SDN (1\.\d+) or newer \|$`).
		FindStringSubmatch(string(text))
	if row == nil {
		t.Fatal("docs/support.md has no row with the versions of Kubernetes")
	}
	return version.MustParseMajorMinor(row[1]), version.MustParseMajorMinor(row[2])
}

func gvk(o map[string]any) schema.GroupVersionKind {
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// checkServed checks that a version of Kubernetes has a kind.
func checkServed(t *testing.T, name string, kind schema.GroupVersionKind, kubernetes *version.Version) {
	t.Helper()
	switch kind.GroupVersion().String() {
	case "apiextensions.k8s.io/v1", "security.openshift.io/v1": // of other modules, since 1.16 and OpenShift 4.0
		return
	}
	o, err := kubescheme.Scheme.New(kind)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	lifecycle, ok := o.(interface{ APILifecycleIntroduced() (int, int) })
	if !ok {
		t.Errorf("%s: unknown which version of Kubernetes introduced %s", name, kind)
		return
	}
	if major, minor := lifecycle.APILifecycleIntroduced(); kubernetes.LessThan(version.MajorMinor(uint(major),
		uint(minor))) {
		t.Errorf("%s: Kubernetes %s does not serve %s, which is of %d.%d", name, kubernetes, kind, major, minor)
	}
}

// checkCRD checks a CRD as the API server of a version of Kubernetes does: CEL is that of the version before.
func checkCRD(t *testing.T, o map[string]any, kubernetes *version.Version) {
	t.Helper()
	effective, ok := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(
		basecompatibility.DefaultKubeComponent).(basecompatibility.MutableEffectiveVersion)
	if !ok {
		t.Fatal("the compatibility version of the API server cannot be set")
	}
	own := effective.MinCompatibilityVersion()
	effective.SetMinCompatibilityVersion(kubernetes.SubtractMinor(1))
	defer effective.SetMinCompatibilityVersion(own)

	scheme := runtime.NewScheme()
	install.Install(scheme)
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	decoded, _, err := codecs.UniversalDecoder(apiextensions.SchemeGroupVersion).Decode(text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	crd, ok := decoded.(*apiextensions.CustomResourceDefinition)
	if !ok {
		t.Fatalf("%T is no CRD", decoded)
	}
	for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), crd) {
		t.Errorf("Kubernetes %s refuses %s: %s: %.300s", kubernetes, crd.Name, err.Field, err.Detail)
	}
}
