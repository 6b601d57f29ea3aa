// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	"k8s.io/client-go/tools/record"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

func domainOf(active ...string) *v1alpha1.L2Domain {
	d := &v1alpha1.L2Domain{}
	for i, a := range active {
		d.Status.Shards = append(d.Status.Shards, v1alpha1.ShardStatus{Index: int32(i), Active: a})
	}
	return d
}

func TestFailoverIsOneEventOfTheDomain(t *testing.T) {
	for name, test := range map[string]struct {
		before, after *v1alpha1.L2Domain
		want          string
	}{
		"a gateway died": {domainOf("n1", "n2", "n1", "n1"), domainOf("n2", "n2", "n3", "n2"),
			"Normal GatewayChanged shard 0, 3: gateway n2 answers instead of n1; shard 2: gateway n3 answers instead of n1"},
		"nobody is left":     {domainOf("n1"), domainOf(""), "Warning GatewayChanged shard 0: no gateway answers any more, last was n1"},
		"somebody came":      {domainOf("", "n1"), domainOf("n2", "n1"), "Normal GatewayChanged shard 0: gateway n2 answers, nobody did before"},
		"nothing changed":    {domainOf("n1"), domainOf("n1"), ""},
		"a shard was put up": {domainOf("n1"), domainOf("n1", "n2"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			(&Events{Recorder: recorder}).Domain(test.before, test.after)
			close(recorder.Events)
			if got := <-recorder.Events; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if more, ok := <-recorder.Events; ok {
				t.Errorf("one more: %q", more)
			}
		})
	}
}
