// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/dataplane"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// Rows that other clients delete or edit are reported. Our own writes are not.
func TestDriftIsReported(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	d, events := dial(t, s)
	one := onHost(service(1, 1, "10.244.1.10"))
	mend := func(t *testing.T) {
		t.Helper()
		configure(t, d, topology(1))
		apply(t, d, one)
		prune(t, d, one)
	}
	mend(t)
	want := s.dump(t)
	lb := "slb-default/s1-10.50.1.1-tcp"
	for _, harm := range [][]string{
		{"lr-del", "slb-lan-0"},
		{"ls-del", "slb-lan"},
		{"lb-del", lb},
		{"lr-lb-del", "slb-lan-0", lb},
		{"set", "load_balancer", lb, `vips:"10.50.1.1:80"="10.244.9.9:80"`},
		{"lr-policy-del", "ovn_cluster_router", "700"},
		{"lr-policy-del", "ovn_cluster_router", "699"},
		{"lr-del", "slbnode-n3"},
		{"lb-del", "slbnode-n3-tcp"},
		{"lr-route-del", "ovn_cluster_router", "240.1.0.0/16"},
		{"--policy=src-ip", "lr-route-del", "ovn_cluster_router", "240.0.0.0/4"},
		{"--policy=dst-ip", "lr-route-del", "ovn_cluster_router", "169.254.169.3/32"},
		{"lb-del", "slbnode-n1-host-tcp"},
		{"remove", "logical_router", "slbnode-n1", "options", "lb_force_snat_ip"},
		{"remove", "load_balancer", "slbnode-n3-tcp", "options", "skip_snat"},
		{"clear", "load_balancer", "slbnode-n3-tcp", "selection_fields"},
		{"clear", "address_set", "slb_backends_n3_ip4", "addresses"},
		{"destroy", "address_set", "slb_backends_n3_ip4"},
		{"lsp-del", "join-slb-lan-0"},
		{"ha-chassis-group-remove-chassis", "slb-lan-0", "c1"},
		{"remove", "nb_global", ".", "options", "bfd-min-rx"},
	} {
		t.Run(strings.Join(harm, " "), func(t *testing.T) {
			drain(events)
			s.nbctl(t, harm...)
			mended(t, s, want, events, func() { mend(t) })
		})
	}
}

// mended waits until the rows are as wanted. As in a controller, each report of changed rows leads to a repair. A
// report may be an old one that comes late, from between two steps of the former repair: then there is another one.
func mended(t *testing.T, s *server, want string, events <-chan EventKind, mend func()) {
	t.Helper()
	for {
		waitFor(t, events, Rows)
		mend()
		diff := cmp.Diff(stripped(want), stripped(s.dump(t)))
		if diff == "" {
			return
		}
		t.Logf("before and after:\n%s", diff)
	}
}

// A process without a desired state reports no changes by other clients.
func TestRowsOfOtherOwnersCauseNoDrift(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	bystander, events := dial(t, s)
	apply(t, d, service(1, 1, "10.244.1.10"))
	apply(t, d, service(1, 1, "10.244.1.11"))
	remove(t, d, service(1, 1))
	configure(t, d, topology(0))
	await.True(t, "the bystander sees it all", func() bool { return len(shardStates(bystander)) == 0 })
	for len(events) > 0 {
		if <-events == Rows {
			t.Error("rows of others were reported")
		}
	}
}

// The rows of a Service without a plan are reported once those that existed before were pruned. A transaction that a
// former leader has sent may arrive late.
func TestLateWriteOfAnotherControllerIsDrift(t *testing.T) {
	t.Parallel()
	s, former := ready(t, 1)
	stays, gone, late := service(1, 1, "10.244.1.10"), service(2, 1, "10.244.1.10"), service(3, 1, "10.244.1.10")
	apply(t, former, stays, gone)
	d, events := dial(t, s)
	configure(t, d, topology(1))
	apply(t, d, stays)
	prune(t, d, stays)
	want := s.dump(t)
	drain(events)
	apply(t, former, late)
	mended(t, s, want, events, func() { prune(t, d, stays) })
}

// A row of another owner that has the name of one of ours is not changed. Whatever needs the name fails with an
// error, and everything else is written.
func TestTakenLoadBalancerNameIsReported(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	s.nbctl(t, "lr-add", "slb-lan-1", "--", "set", "Logical_Router", "slb-lan-1", "options:chassis=theirs")
	theirs := s.nbctl(t, "list", "Logical_Router", "slb-lan-1")
	d, _ := dial(t, s)
	if err := d.Configure(t.Context(), topology(2)); err == nil || !strings.Contains(err.Error(),
		"another client has a row of the same name") {
		t.Errorf("Configure: %v", err)
	}
	good, waits := service(2, 2, "10.244.1.10"), service(1, 2, "10.244.1.11")
	failed := d.Apply(t.Context(), []dataplane.Change{{Key: good.Key, Want: good}, {Key: waits.Key, Want: waits}})
	if err := failed[waits.Key]; len(failed) != 1 || err == nil || !strings.Contains(err.Error(),
		"slb-lan-1 is not in the database") {
		t.Errorf("Apply: %v", failed)
	}
	if out := s.nbctl(t, "list", "Logical_Router", "slb-lan-1"); out != theirs {
		t.Errorf("their router before - and after +:\n%s", cmp.Diff(theirs, out))
	}
	s.nbctl(t, "lr-del", "slb-lan-1")
	configure(t, d, topology(2))
	apply(t, d, waits)
}

// A foreign row with the name of a node's router fails the Services that have backends on that node, repeatedly, and
// no others. Applying the same plan succeeds once the row is gone.
func TestTakenRouterNameIsReported(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	s.nbctl(t, "lr-add", "slbnode-n3")
	there, other := service(1, 1, "10.244.1.10"), service(2, 1, "10.244.2.10")
	try := func(plans ...*plan.Service) map[world.Key]error {
		var changes []dataplane.Change
		for _, p := range plans {
			changes = append(changes, dataplane.Change{Key: p.Key, Want: p})
		}
		return d.Apply(t.Context(), changes)
	}
	for range 2 {
		if failed := try(there, other); len(failed) != 1 || !strings.Contains(failed[there.Key].Error(),
			"write return paths: ") {
			t.Errorf("Apply: %v", failed)
		}
	}
	if failed := try(service(2, 1, "10.244.2.10", "10.244.2.11")); len(failed) != 0 {
		t.Errorf("Apply of another: %v", failed)
	}
	// Neither the shards nor Services with other backends suffer from it.
	keep := func(world.Key) bool { return true }
	for what, err := range map[string]error{"Configure": d.Configure(t.Context(), topology(1)),
		"Prune": d.Prune(t.Context(), keep)} {
		var services dataplane.ServicesError
		if !errors.As(err, &services) || services.Other != nil ||
			!maps.Equal(services.Services, map[world.Key]bool{there.Key: true}) {
			t.Errorf("%s: %v, want an error of Service %s only", what, err, there.Key)
		}
	}
	var services dataplane.ServicesError
	err := d.Configure(t.Context(), topology(257))
	if !errors.As(err, &services) || !services.Services[there.Key] || !errors.As(err, new(dataplane.ShardsError)) {
		t.Errorf("Configure with too many shards: %v", err)
	}
	s.nbctl(t, "lr-del", "slbnode-n3")
	configure(t, d, topology(1))
	prune(t, d, there, other)
	apply(t, d, there)
	if out := s.nbctl(t, "lb-list"); !strings.Contains(out, " 10.244.1.10") {
		t.Errorf("no way back:\n%s", out)
	}
}
