// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A kubelet can write any text into its Node, and the MAC address becomes part of rows.
func TestGatewayMACIsThatOfOneHost(t *testing.T) {
	for text, want := range map[string]string{
		"02:42:AC:12:00:0b": "02:42:ac:12:00:0b", "52:54:00:00:00:01": "52:54:00:00:00:01",
		"": "", "00:00:00:00:00:00": "", "01:00:5e:00:00:01": "", "ff:ff:ff:ff:ff:ff": "", "02:42:ac:12:00:0b 10.50.0.1": "",
		"02:00:5e:10:00:00:00:01": "",
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			annotationGateway: `{"default":{"mac-address":"` + text + `"}}`}}}
		if got := Node(n, Options{}).GatewayMAC; got != want {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

func TestEgressHost(t *testing.T) {
	for _, test := range []struct {
		by, host, want string
		translates     bool
	}{
		{"LoadBalancerIP", "n2", "n2", true}, {"LoadBalancerIP", "", "", true}, {"Network", "ALL", "", false},
		{"Network", "n2", "", false}, {"", "n2", "", false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"sourceIPBy": test.by}, "status": map[string]any{"host": test.host}}}
		if got, translates := EgressHost(u); got != test.want || translates != test.translates {
			t.Errorf("%+v: %q, %t", test, got, translates)
		}
	}
	if got, translates := EgressHost(&unstructured.Unstructured{Object: map[string]any{"status": "n2"}}); translates {
		t.Errorf("without a spec: %q", got)
	}
}

// A kubelet can write any text into its Node, and the chassis becomes part of rows in all databases.
func TestChassisIsAnIdentifier(t *testing.T) {
	for id, want := range map[string]bool{
		"c0a8f2f4-6b7e-4a3e-9d61-8f1f6ad1a0c1": true, "node-1.example_com": true,
		"c3\x00": false, "c3\xff": false, "c 3": false, "c3\u2028": false, "c3\x1b[2J": false,
		strings.Repeat("c", 256): true, strings.Repeat("c", 257): false,
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationChassis: id}}}
		if got := Node(n, Options{}).Chassis; got != map[bool]string{true: id}[want] {
			t.Errorf("%q is read as %q", id, got)
		}
	}
}
