// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// The session of a node that drains is not shown with the error of an outage that ended before.
func TestErrorOfAnEarlierOutage(t *testing.T) {
	const refused = "connection refused"
	const lacks = "IPv6 unicast was not negotiated with the peer"
	ended := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state  v1alpha1.BGPSessionState
		failed time.Time
		err    string
		want   string
	}{
		"established since":         {v1alpha1.BGPEstablished, ended.Add(-time.Minute), refused, ""},
		"lacks a family":            {v1alpha1.BGPEstablished, ended, lacks, lacks},
		"ended without an error":    {v1alpha1.BGPIdle, ended.Add(-time.Minute), refused, ""},
		"ended with the error":      {v1alpha1.BGPIdle, ended.Add(-time.Second), refused, refused},
		"dials again and again":     {v1alpha1.BGPActive, ended.Add(-time.Minute), refused, refused},
		"failed after it had ended": {v1alpha1.BGPIdle, ended.Add(time.Minute), refused, refused},
	} {
		s := nodeSession{Node: "n1", BGPSession: v1alpha1.BGPSession{Peer: "tor", State: c.state, LastError: c.err,
			LastErrorTime: new(metav1.NewTime(c.failed)), Since: new(metav1.NewTime(ended))}}
		if got := s.problem(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s := nodeSession{BGPSession: v1alpha1.BGPSession{State: v1alpha1.BGPEstablished, BFDError: "TTL 254"}}
	if got := s.problem(); got != "BFD: TTL 254" {
		t.Errorf("a session without BFD: %q", got)
	}
}
