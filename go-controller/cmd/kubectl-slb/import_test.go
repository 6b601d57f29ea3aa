// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

const manifests = `
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: lan, namespace: metallb-system}
spec: {addresses: [10.50.0.100-10.50.0.149, "fd00:50::/120"]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: lan, namespace: metallb-system}
`

// importing runs `kubectl slb import` with manifests on the standard input.
func importing(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	app := &cli.App{Commands: []*cli.Command{importCommand()}, Reader: strings.NewReader(manifests), Writer: &out}
	err := app.RunContext(t.Context(), append([]string{"kubectl-slb", "import"}, args...))
	return out.String(), err
}

func TestImportDryRunOfFilesNeedsNoCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metallb.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"-", file} {
		out, err := importing(t, "--dry-run", "--filename", from, "--segment",
			"physnet/7=10.50.0.0/24@10.50.0.1,fd00:50::/64", "metallb")
		if err != nil {
			t.Errorf("%s: %v", from, err)
		}
		for _, want := range []string{"kind: L2Domain", "vlan: 7", "- cidr: 10.50.0.0/24\n    gateway: 10.50.0.1",
			"- cidr: fd00:50::/64", "kind: IPAddressPool", "# note: no cluster was read, so objects "} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", from, want, out)
			}
		}
	}
}

func TestImportReportsSettingsWithoutEqual(t *testing.T) {
	out, err := importing(t, "--dry-run", "--filename", "-", "metallb")
	if err == nil || !strings.Contains(err.Error(), "see the errors above") ||
		!strings.Contains(out, "# error: L2Advertisement/lan: ") || !strings.Contains(out, "kind: IPAddressPool") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// One object that can't be written keeps the others from being written.
func TestImportWritesAllObjectsOrNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metallb.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &apiServer{refused: map[string]bool{"ipaddresspools": true}}
	out, err := s.run(t, "import metallb -f "+file+" --segment physnet=10.50.0.0/24@10.50.0.1,fd00:50::/64")
	if err == nil || !strings.Contains(err.Error(), "nothing was created") || len(s.patched) > 0 ||
		!strings.Contains(out, "error: ipaddresspools.slb.k8s.ovn.org/lan: ") || strings.Contains(out, "l2domains.slb") {
		t.Errorf("error %v, written %v, output\n%s", err, s.patched, out)
	}
}

// What the cluster has counts, also for a dry run of files: it changes what becomes of the objects.
func TestImportNamesObjectsOfTheCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metallb.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	const header = `{"apiVersion":"slb.k8s.ovn.org/v1alpha1","kind":`
	items := map[string]string{
		"ipaddresspools": header + `"IPAddressPool","metadata":{"name":"lan"},"spec":{"addresses":["10.50.0.9"]}}`,
		"l2domains": header + `"L2Domain","metadata":{"name":"old"},"spec":{"ipAddressPools":["lan"],` +
			`"physicalNetwork":"provider","subnets":[{"cidr":"10.50.0.0/24"},{"cidr":"fd00:50::/64"}]}}`,
	}
	const differs = `["10.50.0.100-10.50.0.149","fd00:50::/120"], was ["10.50.0.9"]`
	for name, c := range map[string]struct {
		owner, fails string
		want         []string
	}{
		"the import may change it": {want: []string{"# warning: ipaddresspools.slb.k8s.ovn.org/lan: exists in the cluster, " +
			"and the import changes it: spec.addresses: " + differs, "which stay as they are: L2Domain/old\n"}},
		"another field manager has set it": {owner: "kubectl-edit", fails: "see the errors above",
			want: []string{`# error: ipaddresspools.slb.k8s.ovn.org/lan: exists in the cluster with fields that other field ` +
				`managers have set, and that the import does not overwrite: spec.addresses (conflict with "kubectl-edit"). To ` +
				`overwrite them, apply the output of --dry-run`, differs}},
	} {
		s := &apiServer{items: items, owned: map[string]string{"ipaddresspools": c.owner}}
		out, err := s.run(t, "import metallb --dry-run -f "+file)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
		if err == nil != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) || len(s.patched) > 0 {
			t.Errorf("%s: error %v, want %q; written %v", name, err, c.fails, s.patched)
		}
	}
}

func TestImportRefusesWrongArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`arguments []: want metallb`:                   {},
		`arguments ["purelb"]: want metallb`:           {"purelb"},
		`--segment: "physnet" is not of the form`:      {"--segment", "physnet", "metallb"},
		`no such file or directory`:                    {"--dry-run", "-f", "/nonexistent", "metallb"},
		`stat /nonexistent/config: no such file`:       {"--kubeconfig", "/nonexistent/config", "metallb"},
		`--segment: "physnet=10.50.0.1/24": spec.subn`: {"--segment", "physnet=10.50.0.1/24", "metallb"},
	} {
		if out, err := importing(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q\n%s", args, err, want, out)
		}
	}
}

// The output of a dry run is what the cluster would have after the import, so that plan and kubectl apply of it do the
// same: the API server adds to lists of names.
func TestDryRunOfAnImportMerges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metallb.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	const domain = `{"apiVersion":"slb.k8s.ovn.org/v1alpha1","kind":"L2Domain","metadata":{"name":"physnet"},"spec":{` +
		`"ipAddressPools":%s,"physicalNetwork":"physnet","subnets":[{"cidr":"10.50.0.0/24"},{"cidr":"fd00:50::/64"}]}}`
	s := &apiServer{items: map[string]string{"l2domains": fmt.Sprintf(domain, `["public"]`)},
		stored: map[string]string{"l2domains": fmt.Sprintf(domain, `["public","lan"]`)}}
	out, err := s.run(t, "import metallb --dry-run --segment physnet=10.50.0.0/24,fd00:50::/64 -f "+file)
	if err != nil || !strings.Contains(out, "  ipAddressPools:\n  - public\n  - lan\n") ||
		!strings.Contains(out, "kind: L2Domain\nmetadata:\n  name: physnet\n") {
		t.Errorf("error %v, output\n%s", err, out)
	}
}
