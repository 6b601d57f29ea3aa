// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlanOfManifests(t *testing.T) {
	imported, err := importing(t, "--dry-run", "--filename", "-", "--segment",
		"physnet=10.50.0.0/24@10.50.0.1,fd00:50::/64", "metallb")
	if err != nil {
		t.Fatal(err)
	}
	web, err := os.ReadFile("../../../docs/examples/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const peer = "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: BGPPeer\nmetadata: {name: x}\n" +
		"spec: {myASN: 65000, peerASN: 65530, peerAddress: 10.0.0.1, peerPort: 70000}\n"
	for name, c := range map[string]struct {
		manifests, want string
		refused         bool
	}{
		"output of import": {manifests: imported, want: "problem: L2Domain physnet: no node is selected"},
		"an application": {manifests: string(web),
			want: "note: Deployment web: ignored, because no decision depends on this kind\n"},
		"a peer that would be refused": {manifests: peer, refused: true,
			want: "BGPPeer x: would be refused: spec.peerPort: Invalid value: 70000"},
		"control characters": {manifests: "apiVersion: v1\nkind: \"X\\e[2J\"\nmetadata: {name: x}\n",
			want: `note: X\u001b[2J x: ignored`},
		"only comments": {manifests: "# nothing\n---\n# more\n", want: "Nothing changes."},
	} {
		file := filepath.Join(t.TempDir(), "edit.yaml")
		if err := os.WriteFile(file, []byte(c.manifests), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := (&apiServer{}).run(t, "plan -f "+file)
		if errors.Is(err, errRefused) != c.refused || !c.refused && err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: error %v, output\n%s\nwant %q", name, err, out, c.want)
		}
	}
}
