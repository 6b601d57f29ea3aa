// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Rows that others delete or edit are reported; our own writes are not.
func TestDriftIsReported(t *testing.T) {
	s := serve(t, schema)
	s.clusterRows(t)
	d, news := dial(t, s)
	one := service(1, 1, "10.244.1.10")
	mend := func(t *testing.T) {
		t.Helper()
		configure(t, d, fabric(1))
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
		{"lr-del", "slbnode-n3"},
		{"lb-del", "slbnode-n3"},
		{"lr-route-del", "ovn_cluster_router", "240.1.0.0/16"},
		{"--policy=src-ip", "lr-route-del", "ovn_cluster_router", "240.0.0.0/4"},
		{"lsp-del", "join-slb-lan-0"},
		{"ha-chassis-group-remove-chassis", "slb-lan-0", "c1"},
		{"remove", "nb_global", ".", "options", "bfd-min-rx"},
	} {
		t.Run(strings.Join(harm, " "), func(t *testing.T) {
			drain(news)
			s.nbctl(t, harm...)
			waitFor(t, news, Rows)
			mend(t)
			if diff := cmp.Diff(stripped(want), stripped(s.dump(t))); diff != "" {
				t.Errorf("before and after:\n%s", diff)
			}
		})
	}
}

// A process that has not been told what is wanted has no opinion on what others write.
func TestBystanderIsQuiet(t *testing.T) {
	s, d := ready(t, 1)
	bystander, news := dial(t, s)
	apply(t, d, service(1, 1, "10.244.1.10"))
	apply(t, d, service(1, 1, "10.244.1.11"))
	remove(t, d, service(1, 1))
	configure(t, d, fabric(0))
	eventually(t, "the bystander sees it all", func() bool { return len(bystander.Carriers()) == 0 })
	for len(news) > 0 {
		if <-news == Rows {
			t.Error("rows of others were reported")
		}
	}
}
