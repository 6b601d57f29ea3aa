// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/plan"
)

// The path to a node itself exists while a Service has it as a backend. A new process does not remove it before it
// has received all Services.
func TestHostBackendsComeAndGo(t *testing.T) {
	t.Parallel()
	s := serve(t, schema)
	s.clusterRows(t)
	d, _ := dial(t, s)
	pods, host := service(1, 1, "10.244.2.10"), onHost(service(2, 1, "10.244.2.11"))
	configure(t, d, topology(1))
	apply(t, d, pods)
	prune(t, d, pods)
	without := s.dump(t)

	apply(t, d, host)
	with := s.dump(t)
	for _, row := range []string{"slbnode-n1-host", "Node:n1:to:172.18.0.11", "Node:n1:from:172.18.0.11",
		"Node:n1:to:fd00:18::b", "Node:n1:from:fd00:18::b"} {
		if !strings.Contains(with, row) || strings.Contains(without, row) {
			t.Errorf("%s: with the Service %t, without %t", row, strings.Contains(with, row), strings.Contains(without, row))
		}
	}
	if regexp.MustCompile(`is_chassis_resident.*9080`).MatchString(with) {
		t.Error("replies of pods from the port of a host are looked at")
	}

	again, _ := dial(t, s)
	configure(t, again, topology(1))
	apply(t, again, pods)
	if diff := cmp.Diff(with, s.dump(t)); diff != "" {
		t.Errorf("a new process that has received one Service of two:\n%s", diff)
	}
	apply(t, again, host)
	remove(t, again, host)
	prune(t, again, pods)
	if diff := cmp.Diff(stripped(without), stripped(s.dump(t))); diff != "" {
		t.Errorf("before and after the Service:\n%s", diff)
	}
}

// A node whose own address changes, or that becomes unreachable, keeps no outdated rows.
func TestHostBackendsChange(t *testing.T) {
	t.Parallel()
	s, d := ready(t, 1)
	one := onHost(service(1, 1))
	apply(t, d, one)
	prune(t, d, one)
	f := topology(1)
	f.Nodes = slices.Clone(f.Nodes)
	f.Nodes[0] = plan.Node{Name: "n1", Chassis: "c1", Hosts: hosts()[1:]}
	configure(t, d, f)
	after := s.dump(t)
	for _, row := range []string{"169.254.169.3", "172.18.0.11"} {
		if strings.Contains(after, row) {
			t.Errorf("%s is still there:\n%s", row, after)
		}
	}
	if !strings.Contains(after, "lb_force_snat_ip=\"fd69::3\"") || !strings.Contains(after, "Node:n1:to:fd00:18::b") {
		t.Errorf("the other family:\n%s", after)
	}
}
