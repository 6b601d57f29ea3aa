// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
)

// A Service that the namespace of the context does not have is found where it is, if the user may list Services.
func TestNotFoundNamesOtherNamespaces(t *testing.T) {
	for _, c := range []struct {
		command    string
		namespaces string
		forbidden  bool
		want       string
	}{
		{"explain absent", "", false,
			"service default/absent: not found, and no namespace has a Service of this name"},
		{"explain absent", "shop", false,
			"service default/absent: not found; namespace shop has one: use shop/absent, or -n shop"},
		{"explain absent -n other", "shop", false,
			"service other/absent: not found; namespace shop has one: use shop/absent, or -n shop"},
		{"explain other/absent", "shop blog", false, "service other/absent: not found; namespaces with a Service of this " +
			"name: blog, shop: use NAMESPACE/absent, or -n NAMESPACE"},
		{"explain absent", "g f e d c b a", false, "service default/absent: not found; namespaces with a Service of this " +
			"name: a, b, c, d, e and 2 more: use NAMESPACE/absent, or -n NAMESPACE"},
		{"explain absent", "shop", true, "service default/absent: not found; if it is in another " +
			"namespace, use NAMESPACE/absent, or -n NAMESPACE"},
		{"move absent --to n1", "shop", false,
			"service default/absent: not found; namespace shop has one: use shop/absent, or -n shop"},
	} {
		s := &apiServer{}
		items := []string{`{"metadata":{"name":"web","namespace":"default"}}`}
		for _, namespace := range strings.Fields(c.namespaces) {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"absent","namespace":%q}}`, namespace))
		}
		s.items = map[string]string{"services": strings.Join(items, ",")}
		if c.forbidden {
			s.forbiddenPaths = map[string]bool{"/api/v1/services": true}
		}
		if out, err := s.run(t, c.command); err == nil || err.Error() != c.want {
			t.Errorf("%s, Services in %q: error\n%v\nwant\n%s\noutput %q", c.command, c.namespaces, err, c.want, out)
		}
	}
}
