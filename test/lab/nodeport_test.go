// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The row is that of Service lbc on node n1, captured from OVN-Kubernetes 1.3, but for the order of columns.
func TestNodePortRowIsThatOfOVNKubernetes(t *testing.T) {
	var c nbctl
	c.nodePort(node(1), NodePort{Service: "lbc", Protocol: "tcp", Port: 31494, Target: 8080, Pods: [][]netip.Addr{
		{netip.MustParseAddr("10.244.0.3"), netip.MustParseAddr("fd00:10:244:1::3")},
		{netip.MustParseAddr("10.244.1.3"), netip.MustParseAddr("fd00:10:244:2::3")},
	}}, "@lb")
	want := `--id=@lb
create
Load_Balancer
name="Service_default/lbc_TCP_node_router+switch_n1"
protocol=tcp
external_ids:k8s.ovn.org/kind=Service
external_ids:k8s.ovn.org/owner=default/lbc
options:event=false
options:reject=true
options:skip_snat=false
options:neighbor_responder=none
options:hairpin_snat_ip="169.254.169.5 fd69::5"
vips:"172.18.0.11:31494"="10.244.0.3:8080,10.244.1.3:8080"
vips:"[fd00:18::b]:31494"="[fd00:10:244:1::3]:8080,[fd00:10:244:2::3]:8080"
--
add
Logical_Router
GR_n1
load_balancer
@lb`
	if diff := cmp.Diff(want, strings.Join(c, "\n")); diff != "" {
		t.Error(diff)
	}
}
