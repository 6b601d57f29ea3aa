// SPDX-License-Identifier: Apache-2.0

package api

import (
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// testOwnNode writes as the Pod of a node. The Pod's token contains the name of the node.
func (s *server) testOwnNode(t *testing.T) {
	s.kubectl(t, "apply", "-k", filepath.Join(manifests, "bgp"))
	s.deleteAfter(t, "-k", filepath.Join(manifests, "bgp"))
	config := s.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:ovn-kubernetes:ovnkube-slb-node",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:ovn-kubernetes", "system:authenticated"},
		Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}},
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource, ctx := v1alpha1.GroupVersion().WithResource("bgpnodestatuses"), t.Context()
	statuses, all := others.Resource(resource), s.dynamic.Resource(resource)
	for _, node := range []string{"n1", "n2"} {
		s.apply(t, statusOf(node))
		s.deleteAfter(t, "bgpnodestatus", node)
	}
	dry := []string{metav1.DryRunAll}
	writes := map[string]func(node string) error{
		"create a BGPNodeStatus": func(node string) error {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(statusOf(node)), &o.Object); err != nil {
				return err
			}
			_, err := statuses.Create(ctx, o, metav1.CreateOptions{DryRun: dry})
			if apierrors.IsAlreadyExists(err) { // the request passed admission
				return nil
			}
			return err
		},
		"update the status of one": func(node string) error {
			o, err := all.Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			o.Object["status"] = map[string]any{"routerID": "192.0.2.1"}
			_, err = statuses.UpdateStatus(ctx, o, metav1.UpdateOptions{DryRun: dry})
			return err
		},
		"create a Lease": func(node string) error {
			_, err := kube.CoordinationV1().Leases(guards).Create(ctx,
				&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{DryRun: dry})
			return err
		},
	}
	const denial = `metadata.name: "n2": a node writes of itself only, and this one is "n1"`
	for what, write := range writes {
		// The authorizer and the admission observe roles and policies by watches. A request reaches the policy only with
		// the right to make it.
		await.True(t, what+": the policy is in force", func() bool {
			err := write("n2")
			return err != nil && strings.Contains(err.Error(), denial)
		})
		if err := write("n1"); err != nil {
			t.Errorf("%s, by the node itself: %v", what, err)
		}
		refused(t, write("n2"), []string{denial})
	}

	owner := func(apiVersion, kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "1"}}
	}
	const foreign = `metadata.ownerReferences: "n1" belongs to Node "n1" only`
	for _, c := range []struct {
		denial string
		meta   metav1.ObjectMeta
	}{
		{`metadata.finalizers: a node adds none to "n1"`, metav1.ObjectMeta{Finalizers: []string{"example.com/stay"}}},
		{foreign, metav1.ObjectMeta{OwnerReferences: owner("v1", "Namespace", guards)}},
		{foreign, metav1.ObjectMeta{OwnerReferences: owner("v1", "Node", "n2")}},
		{foreign, metav1.ObjectMeta{OwnerReferences: owner("example.com/v1", "Node", "n1")}},
	} {
		c.meta.Name = "n1"
		_, err := kube.CoordinationV1().Leases(guards).Create(ctx, &coordinationv1.Lease{ObjectMeta: c.meta},
			metav1.CreateOptions{DryRun: dry})
		refused(t, err, []string{c.denial})
	}
	own := metav1.ObjectMeta{Name: "n1", OwnerReferences: owner("v1", "Node", "n1")}
	if _, err := kube.CoordinationV1().Leases(guards).Create(ctx, &coordinationv1.Lease{ObjectMeta: own},
		metav1.CreateOptions{DryRun: dry}); err != nil {
		t.Errorf("a Lease of the own Node: %v", err)
	}

	s.rights(t, "ovnkube-slb-node", true,
		[]right{{"create", "coordination.k8s.io", "leases", "", v1alpha1.PasswordsNamespace, ""}})
	for name, may := range map[string]bool{v1alpha1.SessionTurnLease: true, "other": false, "n1": false} {
		_, err := kube.CoordinationV1().Leases(v1alpha1.PasswordsNamespace).
			Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}},
				metav1.CreateOptions{DryRun: dry})
		if (err == nil) != may {
			t.Errorf("create Lease %s/%s: %v", v1alpha1.PasswordsNamespace, name, err)
		}
	}
	// A token that was not issued to a Pod, for example by kubectl create token, is of no node.
	config.Impersonate.Extra = nil
	if kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	refused(t, writes["create a Lease"]("n1"), []string{"the token is of no node"})
	// The policy does not apply to other users.
	if _, err := s.kube.CoordinationV1().Leases(guards).Create(ctx,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
		metav1.CreateOptions{DryRun: dry}); err != nil {
		t.Errorf("an administrator: %v", err)
	}
	if strings.Contains(s.get(t, "validatingadmissionpolicies", "own-node.slb.k8s.ovn.org", "{.status.typeChecking}"),
		"expressionWarnings") {
		t.Error("the policy has warnings")
	}
}

func statusOf(node string) string {
	return "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: BGPNodeStatus\nmetadata: {name: " + node + "}\n"
}
