// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEgressIPAddrs(t *testing.T) {
	many := make([]any, 2*maxEgressIPs)
	for i := range many {
		many[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	for name, c := range map[string]struct {
		object map[string]any
		want   string // or their number
	}{
		"both families, sorted": {map[string]any{"spec": map[string]any{"egressIPs": []any{"2001:db8::1", "192.0.2.2",
			"192.0.2.1", "192.0.2.2", "::ffff:192.0.2.3"}}}, "[192.0.2.1 192.0.2.2 192.0.2.3 2001:db8::1]"},
		"no addresses": {map[string]any{"spec": map[string]any{"egressIPs": []any{"", "web", "fe80::1%eth0", 7}}}, "[]"},
		"no list":      {map[string]any{"spec": map[string]any{"egressIPs": "192.0.2.1"}}, "[]"},
		"no spec":      {map[string]any{}, "[]"},
		"too many":     {map[string]any{"spec": map[string]any{"egressIPs": many}}, fmt.Sprint(maxEgressIPs)},
	} {
		got := EgressIPAddrs(&unstructured.Unstructured{Object: c.object})
		if fmt.Sprint(got) != c.want && fmt.Sprint(len(got)) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
