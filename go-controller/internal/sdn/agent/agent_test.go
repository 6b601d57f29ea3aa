// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/sdn/revision"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// A label is limited to 15 bytes (IFNAMSIZ).
func TestLabels(t *testing.T) {
	for name, want := range map[string]string{"eth0": "eth0:slb", "enp0s31f6.4": "enp0s31f6.4:slb",
		"enp0s31f6np0v12": "enp0s31f6np:slb"} {
		if got := labelOf(name); got != want {
			t.Errorf("label on %s: %q, want %q", name, got, want)
		}
	}
}

// An annotation that can't be parsed changes nothing, and its version does not count as applied.
func TestUnreadableAssignmentIsKept(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newReconciler(m)
	node := func(version, text string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version,
			Annotations: map[string]string{v1alpha1.AnnotationVIPs: text}}}
	}
	if err := r.read(node("7", `[{"ip":"10.0.0.1","service":"shop/a","generation":1,"shard":"lan/0","interface":"eth1"}]`)); err != nil {
		t.Fatal(err)
	}
	if err := r.read(node("8", `[{"ip":"10.0.0.300"}]`)); err == nil {
		t.Error("what can't be read is read")
	}
	if len(r.want) != 1 || r.version != "7" {
		t.Errorf("version %s: %v", r.version, r.want)
	}
}

func TestHealthChecks(t *testing.T) {
	h := newHealth()
	listed := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if all, err := h.List(t.Context(), nil); err != nil || len(all.GetStatuses()) != 1 ||
			all.GetStatuses()[""].GetStatus() != want {
			t.Errorf("listed: %v (%v), want the agent %v", all, err, want)
		}
	}
	h.set("", "100", nil)
	listed(healthpb.HealthCheckResponse_SERVING)
	for _, c := range []struct {
		service string
		code    codes.Code
		want    healthpb.HealthCheckResponse_ServingStatus
	}{
		{"", codes.OK, healthpb.HealthCheckResponse_SERVING},
		{revision.ServiceName("99"), codes.OK, healthpb.HealthCheckResponse_SERVING},
		{revision.ServiceName("100"), codes.OK, healthpb.HealthCheckResponse_SERVING},
		{revision.ServiceName("101"), codes.OK, healthpb.HealthCheckResponse_NOT_SERVING},
		{"other", codes.NotFound, 0},
	} {
		answer, err := h.Check(t.Context(), &healthpb.HealthCheckRequest{Service: c.service})
		if status.Code(err) != c.code || answer.GetStatus() != c.want {
			t.Errorf("service %q: %v (%v), want %v (%v)", c.service, answer.GetStatus(), err, c.want, c.code)
		}
	}
	h.set("it ends", "100", map[netip.Addr]string{netip.MustParseAddr("10.0.0.1"): "no such interface"})
	listed(healthpb.HealthCheckResponse_NOT_SERVING)
	for service, want := range map[string]string{"": "it ends",
		revision.ServiceName("100"): `{"10.0.0.1":"no such interface"}`} {
		_, err := h.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != want {
			t.Errorf("service %q: %v, want %s", service, err, want)
		}
	}
}

// The answer about the agent identifies what has failed, once a version has been applied, without naming it.
func TestHealthCheckReportsChangeOfFailedAddresses(t *testing.T) {
	h := newHealth()
	at := serveFor(t, h, listen(t))
	reported := func() string {
		t.Helper()
		client, conn := newClient(t, func(ctx context.Context, _ string) (net.Conn, error) {
			return from("127.0.0.1").DialContext(ctx, "tcp", at)
		})
		defer conn.Close()
		var header metadata.MD
		if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
			t.Fatal(err)
		}
		return strings.Join(header.Get(revision.FailedHeader), " ")
	}
	if got := reported(); got != "" {
		t.Errorf("before a version has been applied: %q", got)
	}
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	seen := map[string]bool{}
	for _, failed := range []map[netip.Addr]string{nil, {a: "why"}, {b: "why"}, {a: "why", b: "why"}} {
		h.set("", "100", failed)
		got := reported()
		if got == "" || len(got) > 16 || seen[got] || got != revision.Fingerprint(failed) {
			t.Errorf("failed %v: %q", failed, got)
		}
		seen[got] = true
	}
	if revision.Fingerprint(map[netip.Addr]string{a: "x"}) != revision.Fingerprint(map[netip.Addr]string{a: "y"}) {
		t.Error("the reason is in the fingerprint, and the controller may know only its beginning")
	}
}

// The controller accepts the answer of an agent in which the most addresses have failed, with a reason for each.
func TestReasonsOfAllAddressesAreAccepted(t *testing.T) {
	for name, why := range map[string]string{"plain": "x", "of another alphabet": "ж", "short": ""} {
		failed := map[netip.Addr]string{}
		for a := netip.MustParseAddr("2001:db8:1111:2222:3333:4444:5555:6666"); len(failed) < sdn.MaxVIPs; a = a.Next() {
			failed[a] = "why" + strings.Repeat(why, 1_000)
		}
		h := newHealth()
		h.set("", "100", failed)
		at := serveFor(t, h, listen(t))
		client, _ := newClient(t, func(ctx context.Context, _ string) (net.Conn, error) {
			return from("127.0.0.1").DialContext(ctx, "tcp", at)
		}, grpc.WithMaxHeaderListSize(revision.MaxHeaders))
		_, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: revision.ServiceName("100")})
		got := map[netip.Addr]string{}
		if err := json.Unmarshal([]byte(status.Convert(err).Message()), &got); err != nil || len(got) != len(failed) {
			t.Errorf("%s: %d of %d addresses (%v)", name, len(got), len(failed), err)
		}
		for a := range failed {
			if !strings.HasPrefix(got[a], "why") {
				t.Fatalf("%s: the reason of %s is %q", name, a, got[a])
			}
		}
	}
}
