// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Where tenants may write EgressServices, each may be as large as etcd stores. Only its host is stored, and only a
// change of the host needs a decision.
func TestOnlyTheHostOfAnEgressServiceIsStored(t *testing.T) {
	f, wakes := counted()
	kept := func(by, host, selector string) *egressService {
		return keepEgressService(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": "web", "resourceVersion": "7",
				"annotations": map[string]any{"note": selector}},
			"spec": map[string]any{"sourceIPBy": by,
				"nodeSelector": map[string]any{"matchLabels": map[string]any{"a": selector}}},
			"status": map[string]any{"host": host},
		}})
	}
	long := strings.Repeat("x", 100_000)
	if e := kept("LoadBalancerIP", "n1", long); len(fmt.Sprintf("%+v", e)) > 2000 || e.ResourceVersion != "7" {
		t.Errorf("%d bytes are stored, with version %q", len(fmt.Sprintf("%+v", e)), e.ResourceVersion)
	}
	before := (*egressService)(nil)
	for _, c := range []struct {
		now  *egressService
		want string
		wake bool
	}{
		{kept("LoadBalancerIP", "n1", "a"), "map[shop/web:n1]", true},
		{kept("LoadBalancerIP", "n1", long), "map[shop/web:n1]", false},
		{kept("LoadBalancerIP", "n2", "a"), "map[shop/web:n2]", true},
		{kept("LoadBalancerIP", "", "a"), "map[shop/web:]", true},
		{kept("Network", "", "a"), "map[]", true},
		{kept("LoadBalancerIP", "", "a"), "map[shop/web:]", true},
		{nil, "map[]", true},
	} {
		woken := int(wakes.Load())
		f.setEgress(before, c.now)
		w, _ := f.Snapshot(world.Cluster{})
		if got := fmt.Sprint(w.EgressHosts); got != c.want || int(wakes.Load()) > woken != c.wake {
			t.Errorf("%+v: hosts %s, want %s; %d wakes", c.now, got, c.want, int(wakes.Load())-woken)
		}
		before = c.now
	}
}
