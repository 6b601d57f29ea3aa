// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestWaitStartIsKept(t *testing.T) {
	long := time.Unix(1, 0)
	waiting, another := &world.Service{UID: "a"}, &world.Service{UID: "b"}
	served := &world.Service{UID: "a", Assigned: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	for name, test := range map[string]struct {
		was, is *world.Service
		want    string
	}{
		"comes without an address": {nil, waiting, "now"},
		"comes with one":           {nil, served, "never"},
		"continues to wait":        {waiting, waiting, "long"},
		"was given one":            {waiting, served, "long"},
		"keeps it":                 {served, served, "long"},
		"lost it":                  {served, waiting, "now"},
		"another one of its name":  {waiting, another, "now"},
		"one that has it, instead": {another, served, "never"},
		"not ours any more":        {waiting, nil, "never"},
		"deleted":                  {served, nil, "never"},
	} {
		t.Run(name, func(t *testing.T) {
			got := "now"
			switch since := pendingSince(test.was, test.is, long); {
			case since.IsZero():
				got = "never"
			case since.Equal(long):
				got = "long"
			}
			if got != test.want {
				t.Errorf("waits since %s, want %s", got, test.want)
			}
		})
	}
}
