// SPDX-License-Identifier: Apache-2.0

package slb

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestNewNamesInvalidOptions(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"Kube":                         {Config: config},
		"Config":                       {Kube: client},
		`"Calico"`:                     {Kube: client, Config: config, NetworkType: "Calico"},
		`LoadBalancerClasses: "a/b/c"`: {Kube: client, Config: config, LoadBalancerClasses: []string{"a/b/c"}},
		"MaxServiceBackends: -1":       {Kube: client, Config: config, MaxServiceBackends: -1},
		"ClusterSubnets: 10.244.0.1/16": {Kube: client, Config: config,
			ClusterSubnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.1/16")}},
		`"127.0.0.1:6641"`:               {Kube: client, Config: config, NB: Endpoint{Address: "127.0.0.1:6641"}},
		"ServiceSubnets: invalid Prefix": {Kube: client, Config: config, ServiceSubnets: []netip.Prefix{{}}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want an error that contains %q", err, want)
		}
		if _, err := NewStandby(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewStandby: %v, want an error that contains %q", err, want)
		}
	}
	if _, err := New(Options{Kube: client, Config: config}); err != nil {
		t.Errorf("without OVN's databases: %v", err)
	}
}
