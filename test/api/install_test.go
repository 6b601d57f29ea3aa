// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// testExamples applies docs/examples as documented.
func (s *server) testExamples(t *testing.T) {
	s.kubectl(t, "apply", "-f", filepath.Join(examples, "pool.yaml"), "-f", filepath.Join(examples, "l2domain.yaml"), "-f",
		filepath.Join(examples, "web.yaml"))
	s.deleteAfter(t, "-f", examples)
	for _, c := range []struct{ resource, name, path, want string }{
		{"ipaddresspools", "public", "{.spec.addresses}", `["10.50.0.100-10.50.0.199","fd00:50::100-fd00:50::1ff"]`},
		{"l2domains", "provider", "{.spec.failover.detectInterval}", "200ms"},
		{"services", "web", "{.spec.type} {.spec.ipFamilies}", `LoadBalancer ["IPv4","IPv6"]`},
		{"deployments", "web", "{.spec.replicas}", "6"},
	} {
		if got, err := s.Get(t.Context(), c.resource, metav1.NamespaceDefault, c.name, c.path); err != nil || got != c.want {
			t.Errorf("%s %s %s is %s (%v), want %s", c.resource, c.name, c.path, got, err, c.want)
		}
	}
	for _, names := range []string{"ippool,l2d,bgpp,bgpadv,bfdp,bgpcomm,bgpns", "slb"} { // short names, and the category
		s.kubectl(t, "get", names)
	}
}

// right is an action that a ServiceAccount may or may not perform. An empty namespace or name means all.
type right struct{ verb, group, resource, subresource, namespace, name string }

const guards, passwords = v1alpha1.GuardsNamespace, v1alpha1.PasswordsNamespace

// needs returns the actions of the controller.
func needs() []right {
	const ours, home = "slb.k8s.ovn.org", "ovn-kubernetes"
	var out []right
	for _, verb := range []string{"list", "watch"} {
		out = append(out, right{verb, "", "services", "", "", ""}, right{verb, "", "nodes", "", "", ""},
			right{verb, "", "namespaces", "", "", ""},
			right{verb, "discovery.k8s.io", "endpointslices", "", "", ""})
		for _, resource := range []string{"ipaddresspools", "l2domains", "bgppeers", "bgpadvertisements", "bfdprofiles",
			"communities", "bgpnodestatuses"} {
			out = append(out, right{verb, ours, resource, "", "", ""})
		}
	}
	for _, verb := range []string{"list", "watch"} {
		out = append(out, right{verb, "", "secrets", "", passwords, ""},
			right{verb, "config.openshift.io", "networks", "", "", "cluster"},
			right{verb, "operator.openshift.io", "networks", "", "", "cluster"})
	}
	for _, verb := range []string{"list", "watch", "patch"} {
		out = append(out, right{verb, "coordination.k8s.io", "leases", "", guards, ""})
	}
	for _, resource := range []string{"ipaddresspools", "l2domains", "bgppeers", "bgpadvertisements", "bfdprofiles",
		"communities", "bgpnodestatuses"} {
		out = append(out, right{"update", ours, resource, "status", "", ""})
	}
	return append(out,
		right{"update", "", "services", "status", "", ""}, right{"update", "coordination.k8s.io", "leases", "", home,
			"ovnkube-slb"},
		right{"get", "", "namespaces", "", "", "kube-system"}, right{"get", "coordination.k8s.io", "leases", "", home,
			"ovnkube-slb"},
		right{"create", "coordination.k8s.io", "leases", "", home, ""},
		right{"create", "", "events", "", "default", ""}, right{"patch", "", "events", "", "default", ""}, reviews()[0],
		reviews()[1])
}

// reviews returns the permissions that every process needs to authorize readers of its metrics.
func reviews() []right {
	return []right{{"create", "authentication.k8s.io", "tokenreviews", "", "", ""},
		{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""}}
}

// ownsLease returns the permission with which a node makes its Node the owner of its Lease.
func ownsLease() right { return right{"get", "", "nodes", "", "", "n1"} }

// hasNoUseFor returns actions that a compromised controller must not be able to perform.
func hasNoUseFor() []right {
	const ours, home = "slb.k8s.ovn.org", "ovn-kubernetes"
	out := []right{
		{"get", "", "secrets", "", "", ""}, {"list", "", "secrets", "", "", ""}, {"list", "", "secrets", "", home, ""},
		{"get", "", "configmaps", "", home, ""},
		{"create", "", "secrets", "", passwords, ""}, {"update", "", "secrets", "", passwords, ""},
		{"delete", "", "secrets", "", passwords, ""},
		{"get", "", "services", "", "", ""}, {"get", "", "nodes", "", "", "n1"}, {"get", "", "namespaces", "", "", "shop"},
		{"get", "discovery.k8s.io", "endpointslices", "", "", ""}, {"patch", "", "services", "status", "", ""},
		{"patch", "coordination.k8s.io", "leases", "", home, "ovnkube-slb"},
		{"patch", ours, "ipaddresspools", "status", "", ""},
		{"get", "", "pods", "", "", ""}, {"create", "", "pods", "", home, ""}, {"delete", "", "pods", "", "", ""},
		{"create", "", "pods", "exec", "", ""},
		{"update", "", "nodes", "", "", ""}, {"patch", "", "nodes", "", "", ""}, {"patch", "", "nodes", "status", "", ""},
		{"delete", "", "nodes", "", "", ""},
		{"update", "", "services", "", "", ""}, {"patch", "", "services", "", "", ""}, {"create", "", "services", "", "", ""},
		{"delete", "", "services", "", "", ""},
		{"update", "", "namespaces", "", "", ""}, {"delete", "", "namespaces", "", "", ""},
		{"update", "discovery.k8s.io", "endpointslices", "", "", ""}, {"create", "discovery.k8s.io", "endpointslices", "", "",
			""},
		{"update", "coordination.k8s.io", "leases", "", home, "other"}, {"get", "coordination.k8s.io", "leases", "",
			"kube-node-lease", "n1"},
		{"delete", "coordination.k8s.io", "leases", "", home, "ovnkube-slb"},
		{"create", "coordination.k8s.io", "leases", "", guards, ""},
		{"update", "coordination.k8s.io", "leases", "", guards, "n1"}, {"delete", "coordination.k8s.io", "leases", "", guards,
			"n1"},
		{"create", "apps", "deployments", "", "", ""}, {"patch", "apps", "daemonsets", "", home, ""},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", ""},
		{"escalate", "rbac.authorization.k8s.io", "clusterroles", "", "", ""},
		{"impersonate", "", "users", "", "", ""}, {"create", "", "serviceaccounts", "token", home, ""},
		{"update", "apiextensions.k8s.io", "customresourcedefinitions", "", "", ""},
		{"update", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "", ""},
		{"update", "config.openshift.io", "networks", "", "", ""}, {"patch", "config.openshift.io", "networks", "status", "",
			""},
		{"get", "config.openshift.io", "oauths", "", "", ""}, {"list", "config.openshift.io", "networks", "", "", ""},
		{"list", "operator.openshift.io", "networks", "", "", ""}, {"patch", "operator.openshift.io", "networks", "", "",
			"cluster"},
		{"update", "operator.openshift.io", "networks", "status", "", "cluster"},
		{"list", "operator.openshift.io", "consoles", "", "", "cluster"},
		{"get", "", "events", "", "default", ""}, {"delete", "", "events", "", "default", ""},
		{"*", "*", "*", "", "", ""},
	}
	for _, resource := range []string{"ipaddresspools", "l2domains", "bgppeers", "bgpadvertisements", "bfdprofiles",
		"communities", "bgpnodestatuses"} {
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			out = append(out, right{verb, ours, resource, "", "", ""})
		}
	}
	return out
}

// testNode applies the DaemonSet and checks the permissions of a node: it may report its own state, and has no other
// permission of the controller.
func (s *server) testNode(t *testing.T) {
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, "node"))
	s.deleteAfter(t, "-k", filepath.Join(manifests, "node"))
	if got, want := s.get(t, "daemonsets", "ovnkube-slb-node",
		"{.spec.template.spec.serviceAccountName} {.spec.template.spec.containers[0].args[0]}"),
		"ovnkube-slb-node node"; got != want {
		t.Errorf("the DaemonSet runs %q, want %q", got, want)
	}
	yes := append(reviews(), ownsLease())
	for _, verb := range []string{"list", "watch", "create", "patch"} {
		yes = append(yes, right{verb, "coordination.k8s.io", "leases", "", guards, "n1"})
	}
	s.rights(t, "ovnkube-slb-node", true, yes)
	no := append(needs(), hasNoUseFor()...)
	no = slices.DeleteFunc(no, func(r right) bool { return r.namespace == guards || slices.Contains(yes, r) })
	no = append(no, right{"delete", "coordination.k8s.io", "leases", "", guards, "n1"},
		right{"deletecollection", "coordination.k8s.io", "leases", "", guards, ""})
	s.rights(t, "ovnkube-slb-node", false, no)
}

// testBGPNode applies the DaemonSet that speaks BGP, and checks its additional permissions.
func (s *server) testBGPNode(t *testing.T) {
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, "bgp"))
	s.deleteAfter(t, "-k", filepath.Join(manifests, "bgp"))
	args := s.get(t, "daemonsets", "ovnkube-slb-node", "{.spec.template.spec.containers[0].args}")
	if !strings.Contains(args, `"node"`) || !strings.Contains(args, `"--enable-bgp"`) {
		t.Errorf("the DaemonSet runs %s", args)
	}
	const ours = "slb.k8s.ovn.org"
	yes := append(reviews(), ownsLease(), right{"create", ours, "bgpnodestatuses", "", "", ""},
		right{"update", ours, "bgpnodestatuses", "status", "", ""},
		right{"create", "coordination.k8s.io", "leases", "", passwords, ""},
		right{"get", "coordination.k8s.io", "leases", "", passwords, "session-turn"},
		right{"update", "coordination.k8s.io", "leases", "", passwords, "session-turn"})
	for _, verb := range []string{"list", "watch"} {
		yes = append(yes, right{verb, "", "secrets", "", passwords, ""}, right{verb, "", "services", "", "", ""},
			right{verb, "", "nodes", "", "", ""},
			right{verb, "", "namespaces", "", "", ""}, right{verb, "discovery.k8s.io", "endpointslices", "", "", ""},
			right{verb, "operator.openshift.io", "networks", "", "", "cluster"})
		for _, resource := range []string{"ipaddresspools", "l2domains", "bgppeers", "bgpadvertisements", "bfdprofiles",
			"communities", "bgpnodestatuses"} {
			yes = append(yes, right{verb, ours, resource, "", "", ""})
		}
	}
	s.rights(t, "ovnkube-slb-node", true, yes)
	no := slices.DeleteFunc(append(hasNoUseFor(), needs()...), func(r right) bool {
		return r.namespace == guards || slices.Contains(yes, r)
	})
	s.rights(t, "ovnkube-slb-node", false, no)
}

// testSDN applies the manifests for OpenShift SDN. It checks the permissions of an agent and the additional permissions
// of the controller, and that an upgrade to OVN-Kubernetes brings the rules of the CRDs.
func (s *server) testSDN(t *testing.T) {
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, "sdn"))
	t.Cleanup(func() { s.rulesReturn(context.WithoutCancel(t.Context()), t) })
	s.deleteAfter(t, "-f", filepath.Join(manifests, "sdn", "rbac.yaml"), "-f",
		filepath.Join(manifests, "sdn", "daemonset.yaml"), "-f", filepath.Join(manifests, "controller", "deployment.yaml"))
	for _, c := range []struct{ resource, name, want string }{
		{"daemonsets", "ovnkube-slb-sdn", "--enable-sdn"}, {"deployments", "ovnkube-slb", "--network-type=OpenShiftSDN"},
	} {
		if args := s.get(t, c.resource, c.name, "{.spec.template.spec.containers[0].args}"); !strings.Contains(args, c.want) {
			t.Errorf("%s %s runs %s, want %s", c.resource, c.name, args, c.want)
		}
	}
	yes := append(reviews(), right{"create", "coordination.k8s.io", "leases", "", guards, ""},
		right{"patch", "coordination.k8s.io", "leases", "", guards, "n1"},
		right{"create", "", "events", "", "default", ""}, right{"patch", "", "events", "", "default", ""},
		right{"get", "", "nodes", "", "", ""}, right{"get", "", "nodes", "", "", "n1"},
		right{"list", "", "nodes", "", "", ""}, right{"watch", "", "nodes", "", "", ""})
	s.rights(t, "ovnkube-slb-sdn", true, yes)
	s.rights(t, "ovnkube-slb-sdn", false, slices.DeleteFunc(append(hasNoUseFor(), needs()...), func(r right) bool {
		return r.namespace == guards || slices.Contains(yes, r)
	}))
	annotates := right{"patch", "", "nodes", "", "", ""}
	s.rights(t, "ovnkube-slb", true, []right{annotates})
	s.rights(t, "ovnkube-slb", false, slices.DeleteFunc(hasNoUseFor(), func(r right) bool { return r == annotates }))
}

// rulesReturn applies the CRDs of the other flavours over those for OpenShift SDN.
func (s *server) rulesReturn(ctx context.Context, t *testing.T) {
	t.Helper()
	bad := pool("typo", "[10.50.0.0/33]")
	await.NoError(t, "the CRDs for OpenShift SDN have no rules, which its API servers refuse", func(
		context.Context) error {
		return s.create(ctx, bad)
	})
	if _, err := s.Kubectl(ctx, "apply", "-k", filepath.Join(manifests, "crds")); err != nil {
		t.Fatal(err)
	}
	await.True(t, "addresses that cannot be parsed are refused", func() bool { return s.create(ctx, bad) != nil })
}

func (s *server) testRights(t *testing.T) {
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, "network-policy"))
	s.deleteAfter(t, "-k", filepath.Join(manifests, "network-policy"))
	s.rights(t, "ovnkube-slb", true, needs())
	s.rights(t, "ovnkube-slb", false, hasNoUseFor())
	if s.may(t, "ovnkube-master", needs()[0]) {
		t.Error("ovnkube-master has the controller's rights before it runs the controller")
	}
}

// rights checks that a ServiceAccount has all the permissions, or none of them. The authorizer observes roles and
// bindings, and their deletion by an earlier test, by watches: once it grants the positive rights, check the others.
func (s *server) rights(t *testing.T, account string, want bool, list []right) {
	t.Helper()
	for _, r := range list {
		await.True(t, fmt.Sprintf("%s may %+v: %v", account, r, want), func() bool { return s.may(t, account, r) == want })
	}
}

// may reports whether a ServiceAccount of namespace ovn-kubernetes has a permission, according to the API server.
func (s *server) may(t *testing.T, account string, r right) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:ovn-kubernetes:" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ovn-kubernetes", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace, Name: r.name,
		},
	}}
	answer, err := s.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

// testInsideOVNKubeMaster adds the controller to a Deployment of OVN-Kubernetes, which must keep all its own fields.
func (s *server) testInsideOVNKubeMaster(t *testing.T) {
	overlay := filepath.Join(manifests, "overlays/ovnkube-master")
	s.apply(t, ovnkubeMaster)
	for range 2 { // The second iteration changes nothing.
		s.kubectl(t, "apply", "-k", overlay)
		s.kubectl(t, "-n", "ovn-kubernetes", "patch", "deployment", "ovnkube-master", "--patch-file",
			filepath.Join(overlay, "container/container.yaml"))
		s.bothContainers(t, "-n", "ovn-kubernetes", "get", "deployment", "ovnkube-master")
	}
	s.rights(t, "ovnkube-master", true, needs())
	s.kubectl(t, "-n", "ovn-kubernetes", "delete", "deployment", "ovnkube-master")

	component, err := filepath.Abs(filepath.Join(overlay, "container"))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Dir(s.file(t, ovnkubeMaster))
	component, err = filepath.Rel(own, component)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(own, "kustomization.yaml"),
		"resources: [manifest.yaml]\ncomponents: ["+component+"]\n"); err != nil {
		t.Fatal(err)
	}
	s.bothContainers(t, "create", "--dry-run=server", "-k", own)
}

// bothContainers checks the Deployment that kubectl prints.
func (s *server) bothContainers(t *testing.T, kubectl ...string) {
	t.Helper()
	var paths, want []string
	for path, value := range map[string]string{
		"{.spec.template.spec.containers[*].name}":                                             "ovnkube-slb ovnkube-master",
		`{.spec.template.spec.containers[?(@.name=="ovnkube-master")].command}`:                `["/root/ovnkube.sh","ovn-master"]`,
		`{.spec.template.spec.containers[?(@.name=="ovnkube-slb")].args[0]}`:                   "controller",
		`{.spec.template.spec.containers[?(@.name=="ovnkube-slb")].volumeMounts[*].mountPath}`: "/var/run/ovn",
		"{.spec.template.spec.serviceAccountName}":                                             "ovnkube-master",
		"{.spec.replicas}":                      "3",
		"{.spec.template.spec.volumes[*].name}": "slb-run-ovn host-var-run-ovs",
	} {
		paths, want = append(paths, path), append(want, path+" "+value)
	}
	values := strings.Split(s.kubectl(t, append(kubectl, "-o", "jsonpath="+strings.Join(paths, `{"\n"}`))...), "\n")
	for i := range values {
		values[i] = paths[i] + " " + values[i]
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("the Deployment (-want +got):\n%s", diff)
	}
}

// ovnkubeMaster has the relevant parts of OVN-Kubernetes' own Deployment.
const ovnkubeMaster = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ovnkube-master, namespace: ovn-kubernetes}
spec:
  replicas: 3
  selector: {matchLabels: {name: ovnkube-master}}
  template:
    metadata: {labels: {name: ovnkube-master}}
    spec:
      serviceAccountName: ovnkube-master
      hostNetwork: true
      containers:
      - name: ovnkube-master
        image: ovn-daemonset
        command: [/root/ovnkube.sh, ovn-master]
        volumeMounts: [{mountPath: /var/run/ovn/, name: host-var-run-ovs}]
      volumes: [{name: host-var-run-ovs, hostPath: {path: /var/run/openvswitch}}]
`
