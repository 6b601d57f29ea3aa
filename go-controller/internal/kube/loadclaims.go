// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// LoadClaims adds the IPAddressClaims of external pools to objects that LoadObjects has read, in the newest version of
// Cluster API's contract that the API server has. Without the kinds, it adds which are missing. If the user must not
// list them, objects.UnreadClaims is added to Unread.
func LoadClaims(ctx context.Context, ours *Clients, o *objects.Objects) error {
	var missing []string
	list := func(versions []schema.GroupVersionResource, label string) ([]*unstructured.Unstructured, error) {
		found, err := listNewest(ctx, ours, versions, o.ControllerNamespace(), label)
		if apierrors.IsNotFound(err) {
			missing, err = append(missing, versions[0].GroupResource().String()), nil
		}
		return found, err
	}
	claims, err := list(convert.ClaimResources(), v1alpha1.LabelServiceUID)
	var addresses []*unstructured.Unstructured
	if err == nil {
		addresses, err = list(convert.AddressResources(), "")
	}
	switch {
	case apierrors.IsForbidden(err):
		o.Unread = append(o.Unread, objects.UnreadClaims)
		return nil
	case err != nil:
		return fmt.Errorf("list IPAddressClaims and IPAddresses: %w", err)
	case len(missing) > 0:
		o.Claims = &world.Claims{Namespace: o.ControllerNamespace(), Missing: convert.MissingClaimKinds(missing...)}
		return nil
	}
	o.SetClaims(claims, addresses)
	return nil
}

// listNewest returns the objects in a namespace, in the first of some versions that the API server has.
func listNewest(ctx context.Context, ours *Clients, versions []schema.GroupVersionResource, namespace, label string) (
	[]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	var err error
	for _, version := range versions {
		err = pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return ours.Dynamic.Resource(version).Namespace(namespace).List(ctx, o)
		}).EachListItem(ctx, metav1.ListOptions{LabelSelector: label}, func(o runtime.Object) error {
			if u, ok := o.(*unstructured.Unstructured); ok {
				out = append(out, u)
			}
			return nil
		})
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	return out, err
}
