// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"strings"
	"testing"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/manifest"
)

func check(t *testing.T, old, text string) (map[string]any, string) {
	t.Helper()
	parse := func(text string) map[string]any {
		list, err := manifest.Parse([]byte(text))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d objects, error %v", text, len(list), err)
		}
		return list[0].Object
	}
	obj := parse(text)
	kind, _ := obj["kind"].(string)
	var before map[string]any
	if old != "" {
		before = parse(old)
	}
	next, errs, err := Check(kind, before, obj)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range errs {
		texts = append(texts, e.Error())
	}
	return next, strings.Join(texts, "\n")
}

const head = "apiVersion: slb.k8s.ovn.org/v1alpha1\n"

func TestCheckNamesFieldAndValue(t *testing.T) {
	const peer = head + "kind: BGPPeer\nmetadata: {name: x}\nspec: {myASN: 65000, peerASN: 65530, peerAddress: 10.0.0.1, "
	metadata := func(fields string) string { return strings.Replace(peer, "name: x", fields, 1) + "}" }
	const pool = head + "kind: IPAddressPool\n"
	for text, want := range map[string]string{
		peer + "peerPort: 70000}":                               "spec.peerPort: Invalid value: 70000",
		peer + "peerPort: x}":                                   `spec.peerPort: Invalid value: "string"`,
		peer + "interface: eth0}":                               "spec: Invalid value",
		peer + "holdtime: 9s}":                                  "spec.holdtime: Forbidden: unknown field",
		peer + "nodeSelectors: " + many(100):                    "spec.nodeSelectors: Too many: 100",
		peer + "password: " + strings.Repeat("x", 91) + "}":     "spec.password: Too long",
		metadata("name: X_y"):                                   `metadata.name: Invalid value: "X_y"`,
		metadata("generateName: x-"):                            "metadata.name: Required value",
		metadata("name: x, labels: {a: b c}"):                   `metadata.labels: Invalid value: "b c"`,
		metadata("name: x, labels: {a: 1}"):                     "metadata: Invalid value",
		pool + "metadata: {name: x}\n":                          "spec: Required value",
		pool + "spec: {addresses: [10.0.0.1]}\n":                "metadata.name: Required value",
		pool + "metadata: {name: x}\nspec: {addresses: [10]}\n": "spec.addresses[0]: Invalid value",
	} {
		if _, got := check(t, "", text); !strings.Contains(got, want) {
			t.Errorf("%s\nerrors %q, want %q", text, got, want)
		}
	}
}

func many(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat("{matchLabels: {a: b}}, ", n), ", ") + "]}"
}

func TestCheckSetsDefaultsAndKeepsTheStatus(t *testing.T) {
	const pool = head + "kind: IPAddressPool\nmetadata: {name: x, namespace: a}\nspec: {addresses: [10.0.0.1]}\n"
	next, errs := check(t, pool+"status: {assignedIPv4: 1}", pool+"status: {assignedIPv4: 7}")
	spec, _ := next["spec"].(map[string]any)
	status, _ := next["status"].(map[string]any)
	metadata, _ := next["metadata"].(map[string]any)
	if errs != "" || spec["autoAssign"] != true || status["assignedIPv4"] != int64(1) || metadata["namespace"] != nil {
		t.Errorf("errors %q, object %v", errs, next)
	}
}

// What an update does not change may be invalid, as in the API server.
func TestCheckOfAnUpdate(t *testing.T) {
	const old = head + "kind: IPAddressPool\nmetadata: {name: x}\nspec: {addresses: [ten], disabled: false}\n"
	if _, errs := check(t, old, strings.Replace(old, "false", "true", 1)); errs != "" {
		t.Errorf("errors %q, want none", errs)
	}
}
