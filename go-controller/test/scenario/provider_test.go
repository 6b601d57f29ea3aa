// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

// home is the namespace of the controller.
const home = "ovn-kubernetes"

// providerCommands are what a provider of addresses does, by Cluster API's contract, and what others do to its objects.
// Claims are named by their Service and, if it has several, their pool: NAMESPACE/NAME[@POOL].
func providerCommands() []command {
	return []command{
		{"external-pool", "NAME [{SPEC}]", "create an IPAddressPool with the provider's pool of that name",
			func(c *cluster, args []string) ([]string, error) {
				family := "IPv4"
				if strings.HasSuffix(args[0], "6") {
					family = "IPv6"
				}
				return nil, c.applyManifest(fmt.Sprintf("{apiVersion: slb.k8s.ovn.org/v1alpha1, kind: IPAddressPool, "+
					"metadata: {name: %[1]s}, spec: {externalPool: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, "+
					"name: %[1]s, ipFamily: %[2]s}%[3]s}}", args[0], family, fields(args[1:])))
			}},
		{"contract", "VERSION | none", "add the kinds of Cluster API's contract in a version, or remove them",
			func(c *cluster, args []string) ([]string, error) {
				c.server.RemoveKinds(c.contract)
				c.contract = nil
				if args[0] == "none" {
					return nil, nil
				}
				var err error
				if c.contract, err = apiserver.ContractKinds(args[0]); err != nil {
					return nil, err
				}
				c.server.AddKinds(c.contract)
				return nil, c.applyManifest("{apiVersion: v1, kind: Namespace, metadata: {name: " + home + "}}")
			}},
		{"fulfil", "CLAIM ADDRESS [CLAIM]", "let the provider fulfil a claim, with an IPAddress for it or for another claim",
			func(c *cluster, args []string) ([]string, error) {
				return nil, c.fulfil(args[0], args[1], cmp.Or(strings.Join(args[2:], ""), args[0]))
			}},
		{"refuse-claim", "CLAIM REASON MESSAGE", "let the provider refuse a claim",
			func(c *cluster, args []string) ([]string, error) {
				u, err := c.claim(args[0])
				if err != nil {
					return nil, err
				}
				return nil, c.patch(objectName(u), fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"False",`+
					`"reason":%q,"message":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, args[1],
					strings.Join(args[2:], " ")), "status")
			}},
		{"delete-claim", "CLAIM [forced]", "delete a claim as a user, or also remove its finalizers",
			func(c *cluster, args []string) ([]string, error) {
				u, err := c.claim(args[0])
				if err == nil && len(args) > 1 {
					err = c.patch(objectName(u), `{"metadata":{"finalizers":null}}`)
				}
				if err == nil {
					err = c.remove(u)
				}
				return nil, err
			}},
		{"delete-address", "CLAIM", "delete the IPAddress of a claim", func(c *cluster, args []string) ([]string, error) {
			u, err := c.claim(args[0])
			if err != nil {
				return nil, err
			}
			u, err = c.get("ipaddress/" + home + "/" + u.GetName())
			if err != nil {
				return nil, err
			}
			return nil, c.remove(u)
		}},
		{"claims", "", "the IPAddressClaims: for which Service, from which pool, and their state",
			func(c *cluster, _ []string) ([]string, error) {
				list, err := c.listAll("ipaddressclaim")
				if err != nil {
					return nil, err
				}
				out := make([]string, 0, len(list.Items))
				for i := range list.Items {
					out = append(out, claimText(&list.Items[i]))
				}
				slices.Sort(out)
				return out, nil
			}},
	}
}

// objectName returns KIND/NAMESPACE/NAME.
func objectName(u *unstructured.Unstructured) string {
	return strings.ToLower(u.GetKind()) + "/" + u.GetNamespace() + "/" + u.GetName()
}

func (c *cluster) remove(u *unstructured.Unstructured) error {
	client, name, err := c.split(objectName(u))
	if err != nil {
		return err
	}
	return client.Delete(c.t.Context(), name, metav1.DeleteOptions{})
}

// claimFor returns NAMESPACE/NAME@POOL of a claim.
func claimFor(u *unstructured.Unstructured) string {
	l := u.GetLabels()
	return l[v1alpha1.LabelServiceNamespace] + "/" + l[v1alpha1.LabelServiceName] + "@" +
		u.GetAnnotations()[v1alpha1.AnnotationIPAddressPool]
}

func (c *cluster) claim(of string) (*unstructured.Unstructured, error) {
	list, err := c.listAll("ipaddressclaim")
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if is := claimFor(&list.Items[i]); is == of || strings.HasPrefix(is, of+"@") {
			return &list.Items[i], nil
		}
	}
	return nil, errors.New("there is no such claim")
}

// fulfil creates or replaces the IPAddress of a claim, and names it in the status.
func (c *cluster) fulfil(of, address, by string) error {
	u, err := c.claim(of)
	if err != nil {
		return err
	}
	owner, err := c.claim(by)
	if err != nil {
		return err
	}
	pool, _, _ := unstructured.NestedString(u.Object, "spec", "poolRef", "name")
	manifest := fmt.Sprintf("{apiVersion: %s, kind: IPAddress, metadata: {namespace: %s, name: %s}, spec: {claimRef: "+
		"{name: %s}, poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: %s}, address: %q, prefix: 24}}",
		u.GetAPIVersion(), home, u.GetName(), owner.GetName(), pool, address)
	if err := c.applyManifest(manifest); err != nil {
		return err
	}
	return c.patch(objectName(u), fmt.Sprintf(`{"status":{"addressRef":{"name":%q},"conditions":null}}`, u.GetName()),
		"status")
}

func claimText(u *unstructured.Unstructured) string {
	ref, _, _ := unstructured.NestedStringMap(u.Object, "spec", "poolRef")
	text := fmt.Sprintf("%s: %s from %s %s of %s", claimFor(u), u.GetName(), ref["kind"], ref["name"], ref["apiGroup"])
	if name, _, _ := unstructured.NestedString(u.Object, "status", "addressRef", "name"); name != "" {
		text += ", fulfilled"
	}
	if u.GetDeletionTimestamp() != nil {
		text += ", being deleted"
	}
	if !slices.Contains(u.GetFinalizers(), v1alpha1.FinalizerClaim) {
		text += ", without our finalizer"
	}
	return text
}
