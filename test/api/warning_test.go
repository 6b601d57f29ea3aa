// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

// testWarning checks that a pool that serves a deprecated field of Services is accepted with a warning, and others
// without one.
func (s *server) testWarning(t *testing.T) {
	const warning = "Warning: Validation failed for ValidatingAdmissionPolicy 'ippool-external-ips.slb.k8s.ovn.org' " +
		"with binding 'ippool-external-ips.slb.k8s.ovn.org': spec.externalIPs: true: Kubernetes deprecates"
	create := func(name, fields string) string {
		file := s.file(t, object("IPAddressPool", name, "addresses: [192.0.2.0/28]\n"+fields))
		out, err := s.KubectlCommand(t.Context(), "create", "--dry-run=server", "-f", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	// The admission observes policies by a watch.
	await.True(t, "the policy is in force", func() bool {
		return strings.Contains(create("external", "externalIPs: true"), warning)
	})
	for _, fields := range []string{"", "externalIPs: false"} {
		if out := create("internal", fields); strings.Contains(out, "Warning") {
			t.Errorf("%q: %s", fields, out)
		}
	}
	if strings.Contains(s.get(t, "validatingadmissionpolicies", "ippool-external-ips.slb.k8s.ovn.org",
		"{.status.typeChecking}"), "expressionWarnings") {
		t.Error("the policy has warnings")
	}
}
