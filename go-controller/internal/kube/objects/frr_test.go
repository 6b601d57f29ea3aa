// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"testing"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/objects"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The Secret of a peer of frr-k8s is not read: it is missing only if the controller has reported that.
func TestSecretOfAPeerOfFRR(t *testing.T) {
	for status, want := range map[string]string{
		"{}": "",
		"{conditions: [{type: Accepted, status: 'False', reason: SecretNotFound, message: missing, " +
			"lastTransitionTime: '2026-01-01T00:00:00Z'}]}": v1alpha1.ReasonSecretNotFound,
	} {
		var o objects.Objects
		if _, err := o.Set([]byte(`
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: BGPPeer
metadata: {name: tor}
spec: {backend: FRRK8s, myASN: 64512, peerASN: 64513, peerAddress: 10.50.0.1, passwordSecret: {name: tor}}
status: ` + status)); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range o.Snapshot(time.Unix(1_800_000_000, 0)).Peers[0].Findings {
			got += f.Reason
		}
		if got != want {
			t.Errorf("status %s: findings %q, want %q", status, got, want)
		}
	}
}
