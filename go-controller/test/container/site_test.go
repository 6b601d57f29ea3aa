// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/controlplane"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/ovnprefix"
	"github.com/ovnkube-slb/ovnkube-slb/test/lab/proc"
	"github.com/ovnkube-slb/ovnkube-slb/test/program"
)

const (
	manifests = "../../../dist/manifests"
	nodeName  = "n1"
	// device is a link of the node, in the segment 192.0.2.0/24.
	device = "uplink"
	// ovsUser is the owner of Open vSwitch's socket on OpenShift: not root.
	ovsUser = 992
)

// site is an API server, one node with databases, and the image.
type site struct {
	t     *testing.T
	dir   string
	plane *controlplane.ControlPlane
	kube  kubernetes.Interface
	image *image
}

func build(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: os.Getenv(inside)}
	t.Setenv("CGO_ENABLED", "0") // as the image is built
	program, err := program.Path(t.Context(), "go-controller/cmd/ovnkube-slb", s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.image, err = buildImage("../../../dist/images/Containerfile", program, filepath.Join(s.dir, "root")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"link", "add", device, "type", "veth",
		"peer", "segment"}, {"addr", "add", "192.0.2.1/24", "dev", device}, {"link", "set", device, "up"},
		{"link", "set", "segment", "up"}} {
		s.exec("ip", args...)
	}
	s.plane, err = controlplane.Start(t.Context(), controlplane.Config{Dir: filepath.Join(s.dir, "plane"),
		Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.plane.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	config := s.plane.RESTConfig()
	config.QPS = -1
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	s.databases()
	if err := s.plane.Apply(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "apply", "-f", "../../../test/controller/testdata/openshift-kinds.yaml")
	return s
}

func (s *site) exec(name string, args ...string) {
	s.t.Helper()
	if out, err := exec.CommandContext(s.t.Context(), name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// host returns the directory that stands for one of the host.
func (s *site) host(path string) string { return filepath.Join(s.dir, "host", path) }

// databases serves the databases at the sockets of both kinds of clusters.
func (s *site) databases() {
	s.t.Helper()
	for _, d := range []struct{ name, schema, socket string }{
		{"vswitch", "openvswitch/vswitch.ovsschema", "/var/run/openvswitch/db.sock"},
		{"nb", "ovn/ovn-nb.ovsschema", "/var/run/openvswitch/ovnnb_db.sock"},
		{"sb", "ovn/ovn-sb.ovsschema", "/var/run/openvswitch/ovnsb_db.sock"},
		{"ic-nb", "ovn/ovn-nb.ovsschema", "/var/run/ovn-ic/ovnnb_db.sock"},
		{"ic-sb", "ovn/ovn-sb.ovsschema", "/var/run/ovn-ic/ovnsb_db.sock"},
	} {
		file, socket := filepath.Join(s.dir, d.name+".db"), s.host(d.socket)
		if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
			s.t.Fatal(err)
		}
		s.exec("ovsdb-tool", "create", file, ovnprefix.Schema(d.schema))
		_, err := proc.Start(s.t.Context(), proc.Spec{Name: "db-" + d.name, Dir: s.dir, Args: []string{"ovsdb-server",
			"--remote=punix:" + socket, "--no-chdir", "--log-file=/dev/null", "--unixctl=" + file + ".ctl", file},
			Ready: func(context.Context) error { _, err := os.Stat(socket); return err }})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.Chown(s.host("/var/run/openvswitch/db.sock"), ovsUser, ovsUser); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chmod(s.host("/var/run/openvswitch/db.sock"), 0o750); err != nil {
		s.t.Fatal(err)
	}
}

// authorized waits until the API server's authorizer knows all rights that bindings give to the account of a Pod. It
// learns of bindings and roles some time after they have been applied, and until then it forbids what they allow.
func (s *site) authorized(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	rbac, account := s.kube.RbacV1(), pod.Spec.ServiceAccountName
	ours := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == pod.Namespace && s.Name == account
		})
	}
	everywhere, err := rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var bindings []rbacv1.RoleBinding
	for _, b := range everywhere.Items {
		bindings = append(bindings, rbacv1.RoleBinding{Subjects: b.Subjects, RoleRef: b.RoleRef})
	}
	within, err := rbac.RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rights := 0
	for _, b := range append(bindings, within.Items...) {
		if !ours(b.Subjects) {
			continue
		}
		var rules []rbacv1.PolicyRule
		if b.RoleRef.Kind == "ClusterRole" {
			role, err := rbac.ClusterRoles().Get(t.Context(), b.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rules = role.Rules
		} else {
			role, err := rbac.Roles(b.Namespace).Get(t.Context(), b.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rules = role.Rules
		}
		for _, right := range attributes(b.Namespace, rules) {
			rights++
			s.allowed(t, "system:serviceaccount:"+pod.Namespace+":"+account, right)
		}
	}
	if rights == 0 {
		t.Fatalf("account %s of namespace %s has no rights", account, pod.Namespace)
	}
}

// attributes returns each right of rules for resources, in a namespace or in all.
func attributes(namespace string, rules []rbacv1.PolicyRule) (rights []authorizationv1.ResourceAttributes) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, sub, _ := strings.Cut(resource, "/")
				for _, name := range names {
					for _, verb := range rule.Verbs {
						rights = append(rights, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group,
							Resource: resource, Subresource: sub, Name: name})
					}
				}
			}
		}
	}
	return rights
}

// allowed waits until the API server allows something to a user.
func (s *site) allowed(t *testing.T, user string, right authorizationv1.ResourceAttributes) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right}}
	await.NoError(t, user, func(ctx context.Context) error {
		answer, err := s.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("%+v is not allowed: %s", right, answer.Status.Reason)
		}
		return err
	})
}

// account returns the directory that a Pod has as the volume of its ServiceAccount, with a token that is bound to the
// Pod on the node.
func (s *site) account(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	pods := s.kube.CoreV1().Pods(pod.Namespace)
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Delete(context.WithoutCancel(t.Context()), pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	})
	token := s.kubectl(t, "-n", pod.Namespace, "create", "token", pod.Spec.ServiceAccountName, "--bound-object-kind=Pod",
		"--bound-object-name="+pod.Name, "--bound-object-uid="+string(pod.UID))
	dir, config := t.TempDir(), s.plane.RESTConfig()
	if len(config.CAData) == 0 {
		if config.CAData, err = os.ReadFile(config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	owner := 0
	if user := pod.Spec.Containers[0].SecurityContext.RunAsUser; user != nil {
		owner = int(*user)
	}
	for name, text := range map[string]string{"token": strings.TrimSpace(token), "ca.crt": string(config.CAData),
		"namespace": pod.Namespace} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, owner, owner); err != nil { // as the kubelet does (KEP-2451)
			t.Fatal(err)
		}
	}
	return dir
}

func (s *site) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.plane.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// kubectlAfter runs kubectl when the test ends.
func (s *site) kubectlAfter(t *testing.T, args ...string) {
	t.Cleanup(func() {
		if _, err := s.plane.Kubectl(context.WithoutCancel(t.Context()), args...); err != nil {
			t.Error(err)
		}
	})
}

// api returns host and port of the API server.
func (s *site) api() (host, port string) {
	at, err := url.Parse(s.plane.RESTConfig().Host)
	if err != nil {
		s.t.Fatal(err)
	}
	return at.Hostname(), at.Port()
}

// cluster is what OVN-Kubernetes has before anything is installed.
const cluster = `
apiVersion: v1
kind: Namespace
metadata: {name: ovn-kubernetes}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ovn-config, namespace: ovn-kubernetes}
data: {net_cidr: 10.244.0.0/16/24, svc_cidr: 10.96.0.0/16}
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  annotations: {k8s.ovn.org/node-chassis-id: 5d6a1c0e, k8s.ovn.org/zone-name: n1}
`
