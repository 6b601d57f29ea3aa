// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

// A daemon that can't read Services any more keeps its sessions, and advertises what it read before. Its own report is
// nothing that it decides from.
func TestStatusNamesKindsThatAreNotRead(t *testing.T) {
	kinds, err := apiserver.LoadKinds("../../../../dist/manifests/crds")
	if err != nil {
		t.Fatal(err)
	}
	// The second handler of client-go sleeps since an error of real time, which is in the future of the virtual clock.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = handlers[:1]
	defer func() { utilruntime.ErrorHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		server, err := apiserver.New(kinds)
		if err != nil {
			t.Fatal(err)
		}
		config := server.Client("n1").Config()
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		a, err := New(Options{Node: "n1", Kube: client, Config: config})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { a.watch.Run(ctx) })
		if err := a.watch.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		a.decide()
		running.Go(func() { a.status.run(ctx) })
		for _, step := range []struct {
			resource string
			forbid   bool
			wait     time.Duration
			ready    metav1.ConditionStatus
			reason   string
		}{
			{"services", false, time.Minute, metav1.ConditionTrue, v1alpha1.ReasonReady},
			{"bgpnodestatuses", true, 5 * time.Minute, metav1.ConditionTrue, v1alpha1.ReasonReady},
			{"bgpnodestatuses", false, 5 * time.Minute, metav1.ConditionTrue, v1alpha1.ReasonReady},
			{"services", true, time.Minute, metav1.ConditionTrue, v1alpha1.ReasonReady},
			{"services", true, 2 * time.Minute, metav1.ConditionFalse, v1alpha1.ReasonNotRead},
			{"services", false, 2 * time.Minute, metav1.ConditionTrue, v1alpha1.ReasonReady},
		} {
			server.Forbid(step.resource, step.forbid)
			<-time.After(step.wait)
			synctest.Wait()
			status, known := a.facts.NodeStatus("n1")
			if !known {
				t.Fatal("the node has no BGPNodeStatus")
			}
			is := meta.FindStatusCondition(status.Status.Conditions, v1alpha1.ConditionReady)
			if is == nil || is.Status != step.ready || is.Reason != step.reason ||
				(step.reason == v1alpha1.ReasonNotRead) != strings.Contains(is.Message, "can't read services any more") {
				t.Errorf("%s forbidden: %v for %s: %+v", step.resource, step.forbid, step.wait, is)
			}
		}
		// What follows an outage of the API server is the last report before it, until all kinds are read again.
		ours, err := kube.NewClients(server.User().Config())
		if err != nil {
			t.Fatal(err)
		}
		server.SetAway(true)
		<-time.After(5 * time.Minute)
		server.SetAway(false)
		for range 120 {
			<-time.After(time.Second)
			status, err := ours.NodeStatuses.Get(t.Context(), "n1", metav1.GetOptions{})
			if err != nil || status.Status.Conditions[0].Reason != v1alpha1.ReasonReady {
				t.Fatalf("after an outage: %+v, %v", status, err)
			}
		}
		stop()
		running.Wait()
	})
}
