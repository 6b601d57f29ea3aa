// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// pages lists EndpointSlices, one per page, and rejects watch lists as older API servers do.
type pages struct{ count int }

func (p pages) List(_ context.Context, o metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	n := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &n); err != nil {
			return nil, err
		}
	}
	list := &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	if n+1 < p.count {
		list.Continue = fmt.Sprint(n + 1)
	}
	list.Items = []discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("web-%d", n), ResourceVersion: fmt.Sprint(n + 1),
			Labels:        map[string]string{discoveryv1.LabelServiceName: "web"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "endpoints"}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.244.0.%d", n+1)}}},
	}}
	return list, nil
}

func (p pages) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, fmt.Errorf("sendInitialEvents is forbidden")
	}
	return watch.NewFake(), nil
}

// The informer reports the trimmed objects of all pages of a list.
func TestListKeepsEveryPage(t *testing.T) {
	const count = 3
	received := make(chan *endpoints, count)
	informer := newInformer(pages{count}, &discoveryv1.EndpointSlice{}, keepEndpoints, func(_, now *endpoints) {
		received <- now
	})
	go informer.RunWithContext(t.Context())
	seen := map[string]string{}
	for range count {
		e := await.Receive(t, "each page is reported", received)
		if e.service != (world.Key{Namespace: "shop", Name: "web"}) || e.ManagedFields != nil || e.Labels != nil {
			t.Errorf("kept %+v", e)
		}
		seen[e.Name] = e.world.Endpoints[0].Addr.String()
	}
	for n := range count {
		if name, want := fmt.Sprintf("web-%d", n), fmt.Sprintf("10.244.0.%d", n+1); seen[name] != want {
			t.Errorf("%s has %q, want %q", name, seen[name], want)
		}
	}
}
