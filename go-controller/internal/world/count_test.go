// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

func TestCountUsesSingularOnlyForOne(t *testing.T) {
	for want, got := range map[string]string{
		"0 nodes": world.Count(0, "node"), "1 node": world.Count(1, "node"), "2 nodes": world.Count(2, "node"),
		"1 address": world.Count(int64(1), "address"), "3 addresses": world.Count(int64(3), "address"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
