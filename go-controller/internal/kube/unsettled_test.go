// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"io"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// Two writes have no answer. Both may still be applied, the first one as well, until a later one succeeds.
func TestEarlierWritesWithoutAnswerCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := world.Key{Namespace: "shop", Name: "web"}
		facts, _ := counted()
		facts.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
		w := NewServiceWriter(failing{}, facts, &Events{}, func(string, error) {})
		defer w.queue.ShutDown()
		write := func(addr string) map[netip.Addr]int {
			want := allocated(addr)
			want.UID = "1"
			w.Set(map[world.Key]*status.Service{key: want})
			w.write(t.Context(), job{key: key, address: true})
			may := map[netip.Addr]int{}
			for _, a := range w.sent[key].addrs {
				may[a]++
			}
			return may
		}
		first, second := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
		write("10.0.0.1")
		write("10.0.0.2")
		if may := write("10.0.0.2"); may[first] != 1 || may[second] != 1 || len(may) != 2 {
			t.Errorf("%v may appear, want each of both once", may)
		}
		if may := w.Unsettled()[key]; !slices.Contains(may, first) || !slices.Contains(may, second) {
			t.Errorf("%v are unsettled, want both", may)
		}
		w.client = &slow{begun: map[string]bool{}, done: map[string]time.Duration{}}
		if may := write("10.0.0.2"); len(may) != 0 {
			t.Errorf("%v may appear after a write that succeeded, want none", may)
		}
	})
}

// The API server does not store a status with which the object would be too large: its address will not appear, however
// often another one is requested. etcd's answer and that of its client have no reason of their own.
func TestStatusThatIsTooLargeIsNotUnsettled(t *testing.T) {
	internal := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
			Code: http.StatusInternalServerError, Message: message}}
	}
	for name, c := range map[string]struct {
		err   error
		stays bool
	}{
		"etcd": {err: internal("etcdserver: request is too large")},
		"its client": {err: internal("rpc error: code = ResourceExhausted desc = trying to send message larger than max " +
			"(2097153 vs. 2097152)")},
		"the server":   {err: apierrors.NewRequestEntityTooLargeError("limit is 3145728")},
		"another one":  {err: internal("etcdserver: leader changed"), stays: true},
		"a disconnect": {err: io.ErrUnexpectedEOF, stays: true},
	} {
		key := world.Key{Namespace: "shop", Name: "web"}
		facts, _ := counted()
		facts.setService(nil, serviceOf(corev1.ServiceTypeLoadBalancer))
		w := NewServiceWriter(failing{err: c.err}, facts, &Events{}, func(string, error) {})
		want := allocated("10.0.0.1")
		want.UID = "1"
		w.Set(map[world.Key]*status.Service{key: want})
		w.write(t.Context(), job{key: key, address: true})
		if stays := len(w.sent[key].addrs) > 0; stays != c.stays {
			t.Errorf("%s: %v may appear", name, w.sent[key].addrs)
		}
		w.queue.ShutDown()
	}
}

// A write of a Service has no answer, no status is desired for a moment, and the Service is deleted or recreated
// meanwhile. The address will not appear, and those that wait for it are woken.
func TestDeletedServiceLeavesNothingUnsettled(t *testing.T) {
	for name, uid := range map[string]types.UID{"deleted": "", "recreated": "2"} {
		key := world.Key{Namespace: "shop", Name: "web"}
		facts, wakes := counted()
		object := serviceOf(corev1.ServiceTypeLoadBalancer)
		facts.setService(nil, object)
		w := NewServiceWriter(failing{}, facts, &Events{}, func(string, error) {})
		want := allocated("10.0.0.1")
		want.UID = "1"
		w.Set(map[world.Key]*status.Service{key: want})
		w.write(t.Context(), job{key: key, address: true})
		w.Set(map[world.Key]*status.Service{})
		if len(w.Unsettled()[key]) != 1 {
			t.Errorf("%s: %v may appear before, want one address", name, w.Unsettled())
		}
		var now *corev1.Service
		if uid != "" {
			now = object.DeepCopy()
			now.UID = uid
		}
		facts.setService(object, now)
		before := wakes.Load()
		w.Set(map[world.Key]*status.Service{})
		if may := w.Unsettled()[key]; len(may) > 0 || wakes.Load() == before {
			t.Errorf("%s: %v may appear, %d wakes", name, may, wakes.Load()-before)
		}
		w.queue.ShutDown()
	}
}

// A Service is recreated while a write of the former one has no answer, and the API server refuses that of the new one.
// Neither can appear in the status of the new one.
func TestRefusedWriteOfARecreatedServiceLeavesNothing(t *testing.T) {
	key := world.Key{Namespace: "shop", Name: "web"}
	facts, _ := counted()
	w := NewServiceWriter(failing{}, facts, &Events{}, func(string, error) {})
	defer w.queue.ShutDown()
	var before *corev1.Service
	for _, uid := range []types.UID{"1", "2"} {
		object := serviceOf(corev1.ServiceTypeLoadBalancer)
		object.UID = uid
		facts.setService(before, object)
		want := allocated("10.0.0." + string(uid))
		want.UID = string(uid)
		w.Set(map[world.Key]*status.Service{key: want})
		w.write(t.Context(), job{key: key, address: true})
		w.client = failing{err: apierrors.NewRequestEntityTooLargeError("too large")}
		before = object
	}
	if s := w.sent[key]; len(s.addrs) > 0 {
		t.Errorf("%v may appear", s)
	}
}
