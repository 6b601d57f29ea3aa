// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/explain"
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
		err             error
	}{
		"output of import": {manifests: imported, want: "problem: L2Domain physnet: no node is selected", err: errProblem},
		"an application": {manifests: string(web), err: errProblem, // there is no pool
			want: "note: Deployment web: ignored, because no decision depends on this kind\n"},
		"a peer that would be refused": {manifests: peer, err: errRefused,
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
		if !errors.Is(err, c.err) || !strings.Contains(out, c.want) {
			t.Errorf("%s: error %v, output\n%s\nwant %q", name, err, out, c.want)
		}
	}
}

// Services get the addresses that MetalLB has given them by what an import creates.
func TestPlanOfAnImport(t *testing.T) {
	imported, err := importing(t, "--dry-run", "--filename", "-", "--segment",
		"physnet=10.50.0.0/24@10.50.0.1,fd00:50::/64", "metallb")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "import.yaml")
	if err := os.WriteFile(file, []byte(imported), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "gains   shop/web: gets address 10.50.0.100: shard physnet/"
	s := &apiServer{items: map[string]string{"nodes": node, "services": service}}
	if out, err := s.run(t, "plan -f "+file); !errors.Is(err, errProblem) || !strings.Contains(out, want) {
		t.Errorf("error %v, output\n%s\nwant %q", err, out, want)
	}
}

// Addresses of EgressIPs are not free. Who must not read EgressIPs gets an answer all the same.
func TestPlanReadsEgressIPs(t *testing.T) {
	edit := "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: public}\n" +
		"spec: {addresses: [10.50.0.100-10.50.0.109]}\n"
	file := filepath.Join(t.TempDir(), "edit.yaml")
	if err := os.WriteFile(file, []byte(edit), 0o600); err != nil {
		t.Fatal(err)
	}
	const note = "note: addresses of EgressIPs are taken for free ones, because you must not read EgressIPs"
	for want, forbidden := range map[string]bool{
		"addresses: 10.50.0.101 is an address of EgressIP e and is not allocated anew": false,
		note: true,
	} {
		s := &apiServer{forbidden: map[string]bool{"egressips": forbidden}, items: map[string]string{
			"egressips": `{"apiVersion":"k8s.ovn.org/v1","kind":"EgressIP","metadata":{"name":"e"},` +
				`"spec":{"egressIPs":["10.50.0.101"]}}`}}
		if out, err := s.run(t, "plan -f "+file); !errors.Is(err, errProblem) || !strings.Contains(out, want) {
			t.Errorf("EgressIPs are forbidden: %v: error %v, output\n%s\nwant %q", forbidden, err, out, want)
		}
		if out, err := s.run(t, "status"); err != nil || strings.Contains(out, "egressips") {
			t.Errorf("EgressIPs are forbidden: %v: status: error %v, output\n%s", forbidden, err, out)
		}
	}
}

// A node with a chassis, and a Service with an address.
const (
	node = `{"metadata":{"name":"n1","annotations":{"k8s.ovn.org/node-chassis-id":"c1",` +
		`"k8s.ovn.org/node-subnets":"{\"default\":[\"10.244.1.0/24\"]}"}}}`
	service = `{"metadata":{"name":"web","namespace":"shop"},"spec":{"type":"LoadBalancer","ipFamilies":["IPv4"],` +
		`"ports":[{"port":80}]},"status":{"loadBalancer":{"ingress":[{"ip":"10.50.0.100"}]}}}`
)

// A pipeline must not apply an edit that moves addresses away from their clients, although every Service keeps its
// address.
func TestPlanOfAnotherSegmentDisrupts(t *testing.T) {
	s := &apiServer{items: map[string]string{
		"ipaddresspools": `{"metadata":{"name":"public"},"spec":{"addresses":["10.50.0.100-10.50.0.109"]}}`,
		"l2domains": `{"metadata":{"name":"lan"},"spec":{"physicalNetwork":"provider",` +
			`"failover":{"detectInterval":"200ms","multiplier":3},"gateways":{"max":5,"shards":8},` +
			`"subnets":[{"cidr":"10.50.0.0/24"}]}}`,
		"nodes": node, "services": service,
	}}
	file := filepath.Join(t.TempDir(), "edit.yaml")
	edit := "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: L2Domain\nmetadata: {name: lan}\n" +
		"spec: {physicalNetwork: physnet, subnets: [{cidr: 10.50.0.0/24}]}\n"
	if err := os.WriteFile(file, []byte(edit), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "updates L2Domain lan: physicalNetwork: physnet, was provider\nloses   L2Domain lan: its addresses move"
	if out, err := s.run(t, "plan -f "+file); !errors.Is(err, errNotReachable) || !strings.Contains(out, want) {
		t.Errorf("error %v, want %v; output\n%s\nwant %q", err, errNotReachable, out, want)
	}
}

// A pipeline must not make an edit that takes the label from the only gateway. The manifest is what kubectl label with
// --dry-run=server -o yaml writes.
func TestPlanOfARemovedLabelDisrupts(t *testing.T) {
	labelled := strings.Replace(node, `"name":"n1",`, `"name":"n1","uid":"1","labels":{"uplink":"100g"},`, 1)
	s := &apiServer{items: map[string]string{
		"ipaddresspools": `{"metadata":{"name":"public"},"spec":{"addresses":["10.50.0.100-10.50.0.109"]}}`,
		"l2domains": `{"metadata":{"name":"lan"},"spec":{"ipAddressPools":["public"],"physicalNetwork":"provider",` +
			`"nodeSelectors":[{"matchLabels":{"uplink":"100g"}}],"subnets":[{"cidr":"10.50.0.0/24"}]}}`,
		"nodes": labelled, "services": service,
	}}
	file := filepath.Join(t.TempDir(), "node.yaml")
	for manifest, want := range map[string]error{
		labelled: nil,
		strings.Replace(labelled, `"uplink":"100g"`, "", 1): errNotReachable,
	} {
		text := `{"apiVersion":"v1","kind":"Node",` + strings.TrimPrefix(manifest, "{")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := s.run(t, "plan -f "+file); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v; output\n%s", manifest, err, want, out)
		}
	}
}

// A pipeline must not apply a pool that the admission policy refuses. The addresses of a pool that the same edit
// deletes are free.
func TestPlanOfPoolsThatOverlap(t *testing.T) {
	s := &apiServer{items: map[string]string{"nodes": node,
		"ipaddresspools": `{"metadata":{"name":"public"},"spec":{"addresses":["10.50.0.100-10.50.0.109"],"autoAssign":true,` +
			`"sharing":"Namespace"}}`}}
	file := filepath.Join(t.TempDir(), "edit.yaml")
	edit := "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: fresh}\n" +
		"spec: {addresses: [10.50.0.96/28]}\n"
	if err := os.WriteFile(file, []byte(edit), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "IPAddressPool fresh: would be refused: spec.addresses: 10.50.0.96/28 overlaps 10.50.0.100-10.50.0.109 " +
		"of IPAddressPool public\n"
	if out, err := s.run(t, "plan -f "+file); !errors.Is(err, errRefused) || !strings.Contains(out, want) {
		t.Errorf("error %v, want %v; output\n%s\nwant %q", err, errRefused, out, want)
	}
	const creates = "creates IPAddressPool fresh"
	if out, err := s.run(t, "plan -f "+file+" --delete ipaddresspool/public"); !errors.Is(err, errProblem) ||
		!strings.Contains(out, creates) {
		t.Errorf("with the deletion of the other pool: error %v, output\n%s", err, out)
	}
}

// A Service is deleted by its namespace and name, or by its name in the namespace of the context.
func TestPlanOfDeletions(t *testing.T) {
	s := &apiServer{items: map[string]string{"nodes": node, "services": service}}
	const gone = "deletes Service shop/web\n"
	const want = "want KIND/NAME of an IPAddressPool, L2Domain, BGPPeer, BGPAdvertisement, BFDProfile or Community, or " +
		"service/NAMESPACE/NAME"
	for args, c := range map[string]struct{ out, err string }{
		"--delete service/shop/web":     {out: gone},
		"--delete svc/web -n shop":      {out: gone},
		"--delete services/shop/absent": {err: "--delete services/shop/absent: there is no such object"},
		"--delete service/shop/":        {err: `--delete "service/shop/": ` + want},
		"--delete l2domain/shop/lan":    {err: `--delete "l2domain/shop/lan": ` + want},
		"--delete pod/shop/web":         {err: `--delete "pod/shop/web": ` + want},
	} {
		out, err := s.run(t, "plan "+args)
		if c.err != "" && (err == nil || err.Error() != c.err) || !strings.Contains(out, c.out) {
			t.Errorf("%s: error %v, want %q; output\n%s", args, err, c.err, out)
		}
	}
}

// A BGPPeer without the Secret with its password would have no session.
func TestPlanNamesMissingSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peer.yaml")
	peer := "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: BGPPeer\nmetadata: {name: tor}\n" +
		"spec: {myASN: 65000, peerASN: 65530, peerAddress: 10.0.0.1, passwordSecret: {name: absent}}\n"
	if err := os.WriteFile(file, []byte(peer), 0o600); err != nil {
		t.Fatal(err)
	}
	const about = "BGPPeer tor: spec.passwordSecret: Secret ovnkube-slb-bgp/absent"
	both := filepath.Join(t.TempDir(), "both.yaml")
	secret := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: absent, namespace: ovnkube-slb-bgp}\n"
	if err := os.WriteFile(both, []byte(peer+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &apiServer{items: map[string]string{"nodes": node, "bgpnodestatuses": `{"metadata":{"name":"n1"}}`}}
	if out, err := s.run(t, "plan -f "+both); err != nil {
		t.Errorf("with the Secret: error %v, output\n%s", err, out)
	}
	for want, c := range map[string]struct {
		forbidden bool
		err       error
	}{
		"problem: " + about + " does not exist\n": {err: errProblem},
		"note: " + about + ": not known whether it exists, because you must not read it. Without it, the BGPPeer has no " +
			"session\n": {forbidden: true},
	} {
		s.forbidden = map[string]bool{"absent": c.forbidden}
		if out, err := s.run(t, "plan -f "+file); !errors.Is(err, c.err) || !strings.Contains(out, want) {
			t.Errorf("error %v, want %v; output\n%s\nwant %q", err, c.err, out, want)
		}
	}
}

// A pipeline must not apply a BGPPeer that closes all its sessions, because its Secret does not exist.
func TestPlanOfAnAbsentSecretDisrupts(t *testing.T) {
	s := &apiServer{items: map[string]string{
		"ipaddresspools": `{"metadata":{"name":"public"},"spec":{"addresses":["10.50.0.100-10.50.0.109"],"autoAssign":true,` +
			`"sharing":"Namespace"}}`,
		"bgpadvertisements": `{"metadata":{"name":"public"},"spec":{"ipAddressPools":["public"]}}`,
		"bgppeers":          `{"metadata":{"name":"tor"},"spec":{"myASN":65000,"peerASN":65530,"peerAddress":"10.0.0.1"}}`,
		"bgpnodestatuses":   `{"metadata":{"name":"n1"}}`,
		"nodes": strings.TrimSuffix(node, "}") +
			`,"status":{"addresses":[{"type":"InternalIP","address":"172.18.0.11"}]}}`,
		"services": strings.Replace(service, `"status":{`, `"status":{"conditions":[{"type":"slb.k8s.ovn.org/Allocated",`+
			`"status":"True","reason":"Allocated"}],`, 1),
		"endpointslices": `{"metadata":{"name":"web-1","namespace":"shop","labels":{"kubernetes.io/service-name":"web"}},` +
			`"addressType":"IPv4","ports":[{"port":8080}],"endpoints":[{"addresses":["10.244.1.2"],"nodeName":"n1",` +
			`"conditions":{"ready":true}}]}`,
	}}
	file := filepath.Join(t.TempDir(), "edit.yaml")
	edit := "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: BGPPeer\nmetadata: {name: tor}\n" +
		"spec: {myASN: 65000, peerASN: 65530, peerAddress: 10.0.0.1, passwordSecret: {name: absent}}\n"
	if err := os.WriteFile(file, []byte(edit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := s.run(t, "plan -f "+file)
	for _, want := range []string{
		"problem: BGPPeer tor: spec.passwordSecret: Secret ovnkube-slb-bgp/absent does not exist\n",
		"loses   shop/web: keeps address 10.50.0.100, but it is not announced",
		"BGPPeer tor: sessions close on n1\n",
	} {
		if !errors.Is(err, errNotReachable) || !strings.Contains(out, want) {
			t.Errorf("error %v, want %v; output\n%s\nwant %q", err, errNotReachable, out, want)
		}
	}
}

// Lines fit on a terminal. Those that continue a text stand below it.
func TestPlanIsWrapped(t *testing.T) {
	const text = "problem: one two three\nloses   a/b: loses address 10.50.0.1 because of this\n" +
		"shard lan/7 (1 address): moves from n1 to n2\n"
	const want = "problem: one two three\nloses   a/b: loses address 10.50.0.1\n        because of this\n" +
		"shard lan/7 (1 address): moves from n1\n  to n2\n"
	if got := shownChanges(text, explain.Plain, 40); got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
	if got := shownChanges(text, explain.Plain, 0); got != text {
		t.Errorf("wrapped without a terminal:\n%s", got)
	}
}

// Who must not read claims is told what that leaves open, if a pool is external.
func TestPlanWithoutRightsOnClaims(t *testing.T) {
	const note = "note: what providers have answered is not known, because you must not read IPAddressClaims and " +
		"IPAddresses in namespace ovn-kubernetes\n"
	s := &apiServer{items: map[string]string{"nodes": node}, forbidden: map[string]bool{"ipaddressclaims": true}}
	for spec, want := range map[string]bool{
		"addresses: [192.0.2.1-192.0.2.9]":                               false,
		"externalPool: {apiGroup: ipam.example.org, kind: P, name: one}": true,
	} {
		file := filepath.Join(t.TempDir(), "pool.yaml")
		pool := "apiVersion: slb.k8s.ovn.org/v1alpha1\nkind: IPAddressPool\nmetadata: {name: p}\nspec: {" + spec + "}\n"
		if err := os.WriteFile(file, []byte(pool), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := s.run(t, "plan -f "+file); err != nil && !errors.Is(err, errProblem) ||
			strings.Contains(out, note) != want {
			t.Errorf("%s: error %v, output\n%s", spec, err, out)
		}
	}
}
