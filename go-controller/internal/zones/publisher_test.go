// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// published returns the ServicePlan of Service shop/web.
func published(uid types.UID, version string) *v1alpha1.ServicePlan {
	return &v1alpha1.ServicePlan{ObjectMeta: metav1.ObjectMeta{Name: "shop.web", UID: uid, ResourceVersion: version},
		Spec: v1alpha1.ServicePlanSpec{Namespace: "shop", Name: "web"}}
}

// A ServicePlan that no Service needs is drift once those that existed before were pruned: zones would program the
// addresses of a Service that does not exist. What the API server reports late about one that was just deleted is not.
func TestUnwantedPlanIsDrift(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete {
			t.Errorf("request %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","code":%d}`, status) //nolint:errcheck // the test fails then
	}))
	defer server.Close()
	clients, err := kube.NewClients(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	drifts := 0
	p := New(Options{Clients: clients, Drifted: func() { drifts++ }})
	expect := func(what string, want int) {
		t.Helper()
		if drifts != want {
			t.Errorf("%s: %d reports of drift, want %d", what, drifts, want)
		}
		drifts = 0
	}
	prune := func(keep bool) {
		t.Helper()
		if err := p.Prune(t.Context(), func(world.Key) bool { return keep }); err != nil {
			t.Fatal(err)
		}
	}
	p.observe(nil, published("a", "1"))
	expect("read at the start", 0)
	prune(false)
	p.observe(nil, published("a", "2"))
	expect("an old version of one that was deleted", 0)
	p.observe(published("a", "2"), nil)
	expect("deleted", 0)
	p.observe(nil, published("b", "3"))
	expect("a late write", 1)
	status = http.StatusNotFound
	prune(false)
	if len(p.objects)+len(p.deleted) > 0 {
		t.Errorf("objects %v, deleted %v", p.objects, p.deleted)
	}
	p.observe(nil, published("c", "4"))
	expect("another late write", 1)
	spec := published("c", "4").Spec
	p.wanted["shop.web"] = &spec
	p.observe(published("c", "4"), published("c", "5"))
	expect("wanted", 0)
}
