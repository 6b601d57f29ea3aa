// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
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

// silentServer responds to no request.
type silentServer struct{}

func (silentServer) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// An API server that does not respond delays each write by ten seconds at most, and each of them is progress.
// Otherwise the leader would be restarted amid thousands of writes.
func TestWritesAreBoundedAndAreProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients, err := kube.NewClients(&rest.Config{Host: "http://api", Transport: silentServer{}, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		var progress atomic.Int32
		p := New(Options{Clients: clients, Progress: func() { progress.Add(1) }})
		close(p.synced)
		p.observe(nil, published("a", "1"))
		var changes []dataplane.Change
		for _, name := range []string{"a", "b", "web"} {
			key := world.Key{Namespace: "shop", Name: name}
			changes = append(changes, dataplane.Change{Key: key, Want: &plan.Service{Key: key, SessionAffinity: true}})
		}
		start := time.Now()
		if failed := p.Apply(t.Context(), changes); len(failed) != len(changes) {
			t.Errorf("failed: %v", failed)
		}
		if took := time.Since(start); took != writeTimeout || progress.Load() != int32(len(changes)) {
			t.Errorf("writes took %v, progress %d times", took, progress.Load())
		}
		start = time.Now()
		if err := p.Prune(t.Context(), func(world.Key) bool { return false }); err == nil {
			t.Error("deleted")
		}
		if took := time.Since(start); took != writeTimeout || progress.Load() != int32(len(changes))+1 {
			t.Errorf("deletion took %v, progress %d times", took, progress.Load())
		}
	})
}
