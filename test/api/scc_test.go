// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// constraints are SecurityContextConstraints (security.openshift.io/v1), with the fields that ours set.
type constraints struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`

	AllowHostDirVolumePlugin, AllowHostIPC, AllowHostNetwork, AllowHostPID, AllowHostPorts bool
	AllowPrivilegedContainer, ReadOnlyRootFilesystem                                       bool
	AllowPrivilegeEscalation                                                               *bool

	AllowedCapabilities, DefaultAddCapabilities, RequiredDropCapabilities []corev1.Capability

	RunAsUser struct {
		Type string
		UID  *int64
	}
	SELinuxContext struct {
		Type           string
		SELinuxOptions *corev1.SELinuxOptions
	} `json:"seLinuxContext"`
	FSGroup, SupplementalGroups struct{ Type string }
	SeccompProfiles, Volumes    []string
	Users, Groups               []string
}

// requiredSCC is the annotation that names the only SecurityContextConstraints that a Pod is checked against.
const requiredSCC = "openshift.io/required-scc"

// namespaceLevel stands for the SELinux level that OpenShift gives to each namespace.
const namespaceLevel = "s0:c26,c15"

// violations returns why OpenShift's admission would refuse a Pod: the rules of
// github.com/openshift/apiserver-library-go, pkg/securitycontextconstraints, for the strategies that ours use. The Pod
// has the API server's defaults.
func (c *constraints) violations(pod *corev1.Pod) []string {
	var out []string
	wrong := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	spec := &pod.Spec
	for what, is := range map[string][2]bool{
		"hostNetwork": {spec.HostNetwork, c.AllowHostNetwork}, "hostPID": {spec.HostPID, c.AllowHostPID},
		"hostIPC": {spec.HostIPC, c.AllowHostIPC},
	} {
		if is[0] && !is[1] {
			wrong("%s", what)
		}
	}
	for _, v := range spec.Volumes {
		if kind := volumeKind(&v); !slices.Contains(c.Volumes, kind) || kind == "hostPath" && !c.AllowHostDirVolumePlugin {
			wrong("volume %s of type %s", v.Name, kind)
		}
	}
	pods := spec.SecurityContext
	if pods == nil {
		pods = &corev1.PodSecurityContext{}
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		sc := container.SecurityContext
		if sc == nil {
			sc = &corev1.SecurityContext{}
		}
		for _, port := range container.Ports {
			if port.HostPort != 0 && !c.AllowHostPorts {
				wrong("%s: hostPort %d", container.Name, port.HostPort)
			}
		}
		c.container(sc, pods, func(format string, args ...any) { wrong(container.Name+": "+format, args...) })
	}
	return out
}

// container checks the security context of a container, completed by that of its Pod and by the constraints.
func (c *constraints) container(sc *corev1.SecurityContext, pods *corev1.PodSecurityContext,
	wrong func(format string, args ...any),
) {
	if sc.Privileged != nil && *sc.Privileged && !c.AllowPrivilegedContainer {
		wrong("privileged")
	}
	if c.ReadOnlyRootFilesystem && sc.ReadOnlyRootFilesystem != nil && !*sc.ReadOnlyRootFilesystem {
		wrong("readOnlyRootFilesystem")
	}
	if !*c.AllowPrivilegeEscalation && sc.AllowPrivilegeEscalation != nil && *sc.AllowPrivilegeEscalation {
		wrong("allowPrivilegeEscalation")
	}
	user := pods.RunAsUser
	if sc.RunAsUser != nil {
		user = sc.RunAsUser
	}
	if c.RunAsUser.Type != "MustRunAs" || c.RunAsUser.UID == nil {
		wrong("constraints: runAsUser %+v", c.RunAsUser)
	} else if user != nil && *user != *c.RunAsUser.UID {
		wrong("runAsUser %d", *user)
	}
	want := corev1.SELinuxOptions{Level: namespaceLevel}
	if c.SELinuxContext.SELinuxOptions != nil {
		want = *c.SELinuxContext.SELinuxOptions
	}
	for _, options := range []*corev1.SELinuxOptions{pods.SELinuxOptions, sc.SELinuxOptions} {
		// Options that are set must be equal in all parts: those that are missing are not completed.
		if options != nil && *options != want {
			wrong("seLinuxOptions %+v", *options)
		}
	}
	profile := pods.SeccompProfile
	if sc.SeccompProfile != nil {
		profile = sc.SeccompProfile
	}
	if profile != nil && (profile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!slices.Contains(c.SeccompProfiles, "runtime/default")) {
		wrong("seccompProfile %s", profile.Type)
	}
	if sc.Capabilities == nil {
		return // the defaults are added
	}
	for _, name := range sc.Capabilities.Add {
		if !slices.Contains(slices.Concat(c.AllowedCapabilities, c.DefaultAddCapabilities), name) {
			wrong("capability %s", name)
		}
	}
}

func volumeKind(v *corev1.Volume) string {
	switch {
	case v.HostPath != nil:
		return "hostPath"
	case v.Projected != nil:
		return "projected"
	case v.ConfigMap != nil:
		return "configMap"
	case v.Secret != nil:
		return "secret"
	case v.EmptyDir != nil:
		return "emptyDir"
	}
	return "other"
}

// testOpenShift admits the Pods of the overlays for OpenShift by the SecurityContextConstraints that they require. It
// replaces what is installed.
func (s *server) testOpenShift(t *testing.T) {
	for _, name := range []string{"openshift", "openshift-sdn"} {
		t.Run(name, func(t *testing.T) {
			text := s.kubectl(t, "kustomize", filepath.Join(manifests, "overlays", name))
			s.apply(t, text)
			all := objects(t, text)
			for _, o := range all {
				if o.GetNamespace() == "ovn-kubernetes" {
					t.Errorf("%s %s is in the namespace of OVN-Kubernetes, which OpenShift does not have", o.GetKind(), o.GetName())
				}
			}
			known := constraintsOf(t, all)
			pods := podsOf(t, all)
			if len(pods) != 2 || len(known) != 2 {
				t.Fatalf("%d Pods, %d SecurityContextConstraints, want two of each", len(pods), len(known))
			}
			for _, pod := range pods {
				s.admits(t, known, pod)
			}
		})
	}
}

func constraintsOf(t *testing.T, all []*unstructured.Unstructured) map[string]*constraints {
	t.Helper()
	out := map[string]*constraints{}
	for _, o := range all {
		if o.GetKind() != "SecurityContextConstraints" {
			continue
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		c := &constraints{}
		if err := yaml.UnmarshalStrict(text, c); err != nil {
			t.Fatalf("SecurityContextConstraints %s: %v", o.GetName(), err)
		}
		out[o.GetName()] = c
	}
	return out
}

// admits checks that the account of a Pod may use exactly the constraints that the Pod requires, that they admit the
// Pod, and that they allow nothing else.
func (s *server) admits(t *testing.T, known map[string]*constraints, pod *corev1.Pod) {
	t.Helper()
	required := pod.Annotations[requiredSCC]
	c := known[required]
	if c == nil {
		t.Fatalf("%s requires SecurityContextConstraints %q, which is not there", pod.Name, required)
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "kube-api-access",
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}) // the token of the account
	pod, err := s.createPod(t, pod)
	if err != nil {
		t.Fatal(err)
	}
	// The authorizer observes the roles that were just applied by watches.
	await.True(t, pod.Spec.ServiceAccountName+" may use SecurityContextConstraints "+required, func() bool {
		return s.mayUse(t, pod, required)
	})
	for name := range known {
		if name != required && s.mayUse(t, pod, name) {
			t.Errorf("%s may use SecurityContextConstraints %s", pod.Spec.ServiceAccountName, name)
		}
	}
	if wrong := c.violations(pod); len(wrong) > 0 {
		t.Errorf("%s does not admit %s: %v", required, pod.Name, wrong)
	}
	container := pod.Spec.Containers[0].SecurityContext
	if len(c.Users)+len(c.Groups) > 0 || !slices.Equal(c.AllowedCapabilities, container.Capabilities.Add) ||
		len(c.DefaultAddCapabilities) > 0 || !slices.Equal(c.RequiredDropCapabilities, []corev1.Capability{"ALL"}) ||
		c.AllowHostDirVolumePlugin != slices.Contains(c.Volumes, "hostPath") {
		t.Errorf("%s allows more than %s needs: %+v", required, pod.Name, c)
	}
	for _, kind := range c.Volumes {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return volumeKind(&v) == kind }) {
			t.Errorf("%s allows volumes of type %s, which %s does not have", required, kind, pod.Name)
		}
	}
	yes, user := true, int64(1)
	for what, spoil := range map[string]func(*corev1.Pod, *corev1.SecurityContext){
		"hostPID":                  func(p *corev1.Pod, _ *corev1.SecurityContext) { p.Spec.HostPID = true },
		"hostIPC":                  func(p *corev1.Pod, _ *corev1.SecurityContext) { p.Spec.HostIPC = true },
		"privileged":               func(_ *corev1.Pod, sc *corev1.SecurityContext) { sc.Privileged = &yes },
		"allowPrivilegeEscalation": func(_ *corev1.Pod, sc *corev1.SecurityContext) { sc.AllowPrivilegeEscalation = &yes },
		"readOnlyRootFilesystem":   func(_ *corev1.Pod, sc *corev1.SecurityContext) { sc.ReadOnlyRootFilesystem = new(bool) },
		"runAsUser 1":              func(_ *corev1.Pod, sc *corev1.SecurityContext) { sc.RunAsUser = &user },
		"capability SYS_ADMIN": func(_ *corev1.Pod, sc *corev1.SecurityContext) {
			sc.Capabilities.Add = append(sc.Capabilities.Add, "SYS_ADMIN")
		},
		"seLinuxOptions": func(_ *corev1.Pod, sc *corev1.SecurityContext) {
			sc.SELinuxOptions = &corev1.SELinuxOptions{Type: "container_init_t"}
		},
		"seccompProfile Unconfined": func(_ *corev1.Pod, sc *corev1.SecurityContext) {
			sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		},
		"volume keys of type secret": func(p *corev1.Pod, _ *corev1.SecurityContext) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "keys",
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}})
		},
	} {
		other := pod.DeepCopy()
		spoil(other, other.Spec.Containers[0].SecurityContext)
		if wrong := c.violations(other); len(wrong) != 1 || !strings.Contains(wrong[0], what) {
			t.Errorf("%s with %s: violations %q", pod.Name, what, wrong)
		}
	}
}

func (s *server) mayUse(t *testing.T, pod *corev1.Pod, constraints string) bool {
	t.Helper()
	account := pod.Namespace + ":" + pod.Spec.ServiceAccountName
	review, err := s.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + account,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: pod.Namespace, Verb: "use",
				Group: "security.openshift.io", Resource: "securitycontextconstraints", Name: constraints},
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
